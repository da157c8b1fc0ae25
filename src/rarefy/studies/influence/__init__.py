"""Atypical samples without training (003, Sec. 5.2): the influence score on real data."""
