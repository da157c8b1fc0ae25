"""TopK pruning where noise is useful."""
