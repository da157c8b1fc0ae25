"""Your own images: dense and pruned beside each other."""
