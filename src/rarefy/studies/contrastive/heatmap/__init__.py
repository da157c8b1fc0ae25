"""Neurons against features: lucky neurons, mixed neurons, strong columns."""
