"""Is it the wrong neurons that pruning leaves out?."""
