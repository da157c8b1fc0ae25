"""Labels ever finer: from two sides to one label a sample."""
