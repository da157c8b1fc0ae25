"""Which labelled samples are atypical: anybody's data in, a table of scores out, no training."""
