"""Benign overfitting with noise that differs by class (003)."""
