"""Where samples come from: the papers' data models, one a file."""
