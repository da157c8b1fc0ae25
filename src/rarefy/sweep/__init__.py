"""Many cells: the grid of a study, the store that holds its results, the runner that fills it."""
