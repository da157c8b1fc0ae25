"""Minority alignment under other hyper-parameters and assumptions."""
