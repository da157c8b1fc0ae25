"""Rarer features are carried by fewer, weaker, less pure neurons."""
