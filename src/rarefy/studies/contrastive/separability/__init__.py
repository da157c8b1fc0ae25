"""Are features with more pure neurons easier to read off linearly?."""
