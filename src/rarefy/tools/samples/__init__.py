"""Anybody's labelled data as rows of numbers: arrays, images, tables, Hugging Face sets."""
