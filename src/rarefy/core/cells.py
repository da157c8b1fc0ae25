"""Text in the cells of a CSV file, which a spreadsheet must not take for a formula.

A cell that begins with = + - @ or a tab is run when somebody opens the file, and names of files and
classes come from strangers. The usual remedy is an apostrophe before it; one that stands there
already is doubled, so that the text can be had back.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd

_FORMULA = re.compile(r"[=+\-@\t\r']")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
"""A class may be called -1; nothing is run for that."""


def defused(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before each text that could be a formula."""
    return with_texts(table, _odd, lambda text: f"'{text}")


def with_texts(
    table: pd.DataFrame, odd: Callable[[str], bool], mended: Callable[[str], str]
) -> pd.DataFrame:
    """The table with every text that is ``odd`` in the place of what it is ``mended`` to; itself
    if there is none."""
    fixed = table
    for name in table.columns:
        texts = table[name].tolist() if _is_text(table[name]) else []
        places = [at for at, text in enumerate(texts) if isinstance(text, str) and odd(text)]
        for place in places:
            texts[place] = mended(texts[place])
        if places:
            fixed = fixed.copy() if fixed is table else fixed
            fixed[name] = texts
    return fixed


def restored(texts: pd.Series) -> pd.Series:
    """A column of text as it was before."""
    return texts.str.removeprefix("'")


def _is_text(values: pd.Series) -> bool:
    return values.dtype.kind == "O" or str(values.dtype) in ("str", "string", "category")


def _odd(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
