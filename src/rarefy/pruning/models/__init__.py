"""Pruning while training, for any PyTorch model."""
