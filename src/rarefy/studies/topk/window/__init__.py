"""Theorems 4.4 and 4.5 where they speak: a dimension far above the number of samples."""
