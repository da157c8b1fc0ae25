"""Noise of one kind: where harmful overfitting turns benign."""
