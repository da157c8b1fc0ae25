"""Errors on long-tailed data, against L^2 Gamma."""
