"""Where TopK pruning rescues generalisation: noise against kept weights."""
