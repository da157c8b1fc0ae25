"""Does pruning help contrastive learning on long-tailed images?."""
