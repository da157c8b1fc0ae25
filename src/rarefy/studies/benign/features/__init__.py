"""How feature strength and class size make overfitting benign."""
