"""Accuracy against the share of weights that stay (002 Fig. 3 and 4)."""
