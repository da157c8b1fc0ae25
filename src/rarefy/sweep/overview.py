"""Tables for a terminal: what the verdicts of a study came to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import box
from rich.text import Text

from rarefy.core.contracts import Verdict
from rarefy.core.ledger import verdict_to_json
from rarefy.core.tables import Table

COLOURS = {"holds": "green", "fails": "red", "inconclusive": "yellow", "not-run": "dim"}


def verdicts_as_json(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    return [verdict_to_json(verdict) for verdict in verdicts]


def verdict_table(title: str, rows: Iterable[dict[str, Any]], ledger: bool = False) -> Table:
    """One row a verdict; ``ledger`` adds what the ledger has (rows then say it)."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("claim", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    if ledger:
        table.add_column("ledger", no_wrap=True)
    table.add_column("predicted", ratio=3, overflow="fold")
    table.add_column("measured", ratio=4, overflow="fold")
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("setting", ratio=5, overflow="fold")
    for row in rows:
        outcome = row["outcome"]
        cells: list[str | Text] = [row["claim"], Text(outcome, COLOURS[outcome])]
        if ledger:
            cells.append(row["ledger"])
        cells += [row["predicted"], row["measured"], str(row["n"])]
        table.add_row(*cells, row["setting"])
    return table


def short_number(count: float) -> str:
    """``950``, ``12k``, ``3.4M``."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= limit:
            return f"{count / (1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{count:.0f}"
