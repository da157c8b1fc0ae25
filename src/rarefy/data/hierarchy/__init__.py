"""Label levels of a set of images: those that it has, those that a person adds, those made."""
