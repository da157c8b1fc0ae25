"""How much one pruned step adds to a rare feature, and to the others."""
