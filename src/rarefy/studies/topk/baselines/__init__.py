"""Is it TopK pruning that rescues generalisation, or would anything do?."""
