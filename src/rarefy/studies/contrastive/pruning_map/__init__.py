"""A map of when, and how much, to prune."""
