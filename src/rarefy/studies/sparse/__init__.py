"""Pruning while training on real images (002 Fig. 3 and 4, Tables 1 and 2)."""
