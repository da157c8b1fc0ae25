"""Labels ever finer: from two sides to one label per sample."""
