"""Pruning with several frequencies: the rarest level first, then the next."""
