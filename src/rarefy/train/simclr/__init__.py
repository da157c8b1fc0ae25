"""Contrastive learning on real images, dense or pruned while it trains."""
