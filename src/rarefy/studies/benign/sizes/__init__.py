"""Learning from noise: does it take many samples?."""
