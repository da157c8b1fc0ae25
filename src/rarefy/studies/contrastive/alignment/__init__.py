"""Rarer features are carried by fewer, less pure neurons."""
