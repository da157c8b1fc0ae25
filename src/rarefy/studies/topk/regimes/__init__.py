"""Signal or noise: the two regimes without pruning, and what lies between."""
