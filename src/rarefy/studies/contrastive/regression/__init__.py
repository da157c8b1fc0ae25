"""How well a linear head reads the features off the representation."""
