"""Leaving small neurons out while training: when do rare features grow?."""
