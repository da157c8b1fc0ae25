"""Pieces of one-line complaints that several readers share."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images.listing import listed

SHOWN = 5


def rows_text(rows: NDArray[Any] | Sequence[int]) -> str:
    """``row 7 (counting from 0)``, or ``rows 3, 5, 8, 9, 11 (12 in all, counting from 0)``."""
    shown = ", ".join(str(int(row)) for row in rows[:SHOWN])
    several = "row" if len(rows) == 1 else "rows"
    many = f"{len(rows)} in all, " if len(rows) > SHOWN else ""
    return f"{several} {shown} ({many}counting from 0)"


def in_a_line(error: BaseException) -> str:
    """What somebody else's error says, short and without line breaks."""
    said = " ".join(str(error).split())[:120]
    # it may quote a file from strangers, and a terminal obeys some letters
    return "".join(x if x.isprintable() else "?" for x in said) or type(error).__name__


def no_column(argument: str, column: str, held: Sequence[str], where: str) -> UsageError:
    """A column that is not there, and the nearest names."""
    near = difflib.get_close_matches(column, held, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return bad_value(argument, column, f"no such column in {where}; {hint}it has {listed(held)}")
