"""How it learns: descent of many runs at once, and the losses it descends on."""
