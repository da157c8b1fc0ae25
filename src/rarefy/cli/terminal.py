"""What verbs print, on its way to the terminal: names of strangers must not steer it."""

from __future__ import annotations

import re
from typing import Any

from rarefy.core.text import UNSEEN, spelled

_OURS = r"\x1b\[[\d;]*m|\r?\x1b\[2K|\x1b\[1A|\x1b\[\?25[lh]|\r?\n|\t|\r(?=\x1b|$)"
"""Colours, and how rich draws its progress bar again; line ends."""
_ALL = re.compile(rf"({_OURS})|{UNSEEN}")


class GuardedStream:
    """A stream that spells out all else that a terminal would obey: ``\\x1b]0;``, ``\\u202e``. One
    guard for all that is printed: names come from files, folders, classes and columns."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_ALL.sub(lambda found: found[1] or spelled(found[0]), text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
