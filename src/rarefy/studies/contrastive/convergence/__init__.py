"""Theorem 3.1 at the temperatures and sizes it speaks of."""
