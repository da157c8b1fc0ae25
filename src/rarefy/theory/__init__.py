"""What the papers predict: pure formulas, no training, one lab per file."""
