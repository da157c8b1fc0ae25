"""Tables, tiles and plain text in Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from rarefy.core.contracts import Verdict
from rarefy.core.papers import PAPERS
from rarefy.ledger.claims import STATES
from rarefy.report import style

MADE = "<!-- made by docs/make.py claims from src/rarefy/ledger; do not edit -->"
MARKS = {**dict(zip(STATES, "✓✗<∅?–", strict=True)), **style.OUTCOMES}
"""The sign of an answer, as ``rarefy claims`` has it, and of an outcome."""
_KEY = re.compile(r"(?<![\w.,-])(?:" + "|".join(PAPERS) + r")(?!\w|[.,]\d)")


def named(text: object) -> str:
    """On one line, with papers as a person calls them."""
    return _KEY.sub(lambda found: PAPERS[found[0]].short, " ".join(str(text).split()))


def plain(text: object) -> str:
    """Text as it is: formulas are full of signs that Markdown would take for its own."""
    escaped = html.escape(named(text), quote=False)
    # an underscore inside a word is left alone by Markdown
    return re.sub(r"([\\`*|\[\]{}#]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9]))", r"\\\1", escaped)


def tile(word: str, title: str = "") -> str:
    """The sign of an answer or outcome: coloured on the site, and a plain character elsewhere."""
    about = html.escape(" ".join((title or word).split()))
    # Markdown looks for its own signs before it looks for tags
    about = re.sub(r"[\\`*|_\[\]]", lambda found: f"&#{ord(found[0])};", about)
    kind = ("answer " if word in STATES else "") + word.replace(" ", "-")
    return f'<span class="tile {kind}" title="{about}">{html.escape(MARKS[word])}</span>'


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


def folded(summary: str, text: str) -> str:
    """Shown when asked for."""
    return f'<details markdown="1">\n<summary>{summary}</summary>\n\n{text}\n\n</details>'
