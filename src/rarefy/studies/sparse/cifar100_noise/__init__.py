"""Noise and sparsity: a CNN on CIFAR-100."""
