"""Signal, noise and TopK pruning while training (002)."""
