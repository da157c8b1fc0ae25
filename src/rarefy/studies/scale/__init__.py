"""Where the theorems live: the boundaries of 002 and 003 from a hundred dimensions to a billion."""
