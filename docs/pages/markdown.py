"""Tables and plain text in Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from rarefy.core.contracts import Verdict


def plain(text: object) -> str:
    """Text as it is: formulas are full of signs that Markdown would take for its own."""
    escaped = html.escape(" ".join(str(text).split()), quote=False)
    # an underscore inside a word is left alone by Markdown
    return re.sub(r"([\\`*|\[\]{}#]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9]))", r"\\\1", escaped)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def verdict_table(verdicts: Iterable[Verdict], *heads: str) -> str:
    """``heads``: what of a verdict comes first, to tell it from the others."""
    columns = ("predicted", "measured", "n", "tolerance", "outcome", "note")
    rows = [
        [
            f"**{verdict.outcome}**" if name == "outcome" else plain(getattr(verdict, name))
            for name in (*heads, *columns)
        ]
        for verdict in verdicts
    ]
    return table((*heads, *columns), rows)
