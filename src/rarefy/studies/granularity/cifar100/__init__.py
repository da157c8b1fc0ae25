"""Superclasses of CIFAR-100, pre-trained at many granularities."""
