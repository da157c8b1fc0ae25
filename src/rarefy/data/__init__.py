"""Where samples come from: the papers' data models, one per file."""
