"""Three stages: features grow by frequency, then neurons specialise."""
