"""Accuracy by noise level and share of weights that stay (002 Tables 1 and 2)."""
