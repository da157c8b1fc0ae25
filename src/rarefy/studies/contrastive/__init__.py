"""Contrastive learning under imbalance, and pruning while training (papers 000, 001)."""
