"""Texts from outside (names of files, classes, models) made fit to be printed or to name a file."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with bytes that are no text spelled out (``\\xff``): names of files and folders may
    hold them, tables and terminals refuse them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def file_name(text: str) -> str:
    """Letters, digits and ``-_.`` alone; a dash for anything else."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in text)
