"""Label hierarchies: coarser and finer labels of the same images, read from files or made."""
