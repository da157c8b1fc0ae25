"""From decisions about samples to a cleaned set, in the layout that the data came in."""
