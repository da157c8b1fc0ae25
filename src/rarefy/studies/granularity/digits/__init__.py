"""The same questions at the size of a CPU."""
