"""Noise and sparsity: a Vision Transformer on MNIST."""
