"""Texts from outside (names of files, classes, models) made fit to be printed or to name a file."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Sequence

UNSEEN = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufeff\ufffe\uffff]"
)
"""Control characters, line and direction marks (with which ``gpj.exe`` reads ``exe.jpg``), and
halves of characters that a file name of broken encoding leaves: no page can hold the last."""


def printable(text: str) -> str:
    """The text with bytes that are no text spelled out (``\\xff``): names of files and folders may
    hold them, tables and terminals refuse them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def one_line(text: str) -> str:
    """The text as one line that can be written as UTF-8; what cannot be seen is spelled out."""
    return re.sub(UNSEEN, lambda found: spelled(found[0]), text)


def visible(text: str) -> str:
    """The same of a text in lines, which stay."""
    return re.sub(rf"(?![\n\t]){UNSEEN}", lambda found: spelled(found[0]), text)


def spelled(letter: str) -> str:
    """``\\x1b``, ``\\u202e``"""
    return letter.encode("unicode_escape").decode("ascii")


def as_argument(path: object) -> str:
    """A path as it is typed behind a command: quoted for the shell, and never taken for an
    option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def file_name(text: str) -> str:
    """Letters, digits and ``-_.`` alone; a dash for anything else."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in text)


def folder_name(*words: str, source: str = "", choices: Sequence[object] = ()) -> str:
    """The usual folder of an output: words, and where it is made from a path, a short hash of that
    path and of ``choices``, so that ``a/photos`` and ``b/photos`` do not share one."""
    name = file_name("-".join(words))
    if not os.path.exists(source) and not any(choices):
        return name
    real = os.path.realpath(source) if os.path.exists(source) else source
    told = repr((real, *choices)).encode("utf-8", "surrogateescape")
    return f"{name}-{hashlib.blake2b(told, digest_size=4).hexdigest()}"


def joined(*notes: str) -> str:
    """Remarks as one text; empty ones are left out."""
    return "; ".join(note for note in notes if note)
