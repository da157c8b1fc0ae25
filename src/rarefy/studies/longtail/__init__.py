"""Contrastive learning on long-tailed images (000 Table 2)."""
