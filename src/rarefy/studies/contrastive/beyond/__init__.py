"""Trained attention, and rare features that come with a frequent one."""
