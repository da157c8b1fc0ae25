"""Minority alignment against eps_min under other hyper-parameters."""
