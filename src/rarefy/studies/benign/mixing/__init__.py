"""Long-tailed samples in the training set, and what they are good for."""
