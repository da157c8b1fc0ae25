"""Atypicality without training: the score of 003 Eq. (10), and what stands beside it."""
