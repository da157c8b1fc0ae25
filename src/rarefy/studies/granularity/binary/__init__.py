"""A target with two classes, and made hierarchies of fine classes."""
