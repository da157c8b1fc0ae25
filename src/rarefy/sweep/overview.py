"""Tables for a terminal: what the verdicts of a study came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from rarefy.core.contracts import Verdict
from rarefy.core.tables import Table, make_table

COLOURS = {
    "holds": "green",
    "fails": "red",
    "inconclusive": "yellow",
    "premise-not-met": "cyan",
    "not-run": "dim",
}


def verdict_table(title: str, verdicts: Iterable[Verdict], ledger: Sequence[str] = ()) -> Table:
    """One row per verdict; ``ledger``: what the ledger has beside each."""
    columns = dict.fromkeys(("claim", "outcome", *(["ledger"] if ledger else [])), "")
    columns |= {"predicted": "", "measured": "", "n": "d", "setting": ""}
    words, rows = iter(ledger), []
    for verdict in verdicts:
        outcome = Text(verdict.outcome, COLOURS[verdict.outcome])
        told = {**vars(verdict), "outcome": outcome, "ledger": next(words, "")}
        rows.append([told[name] for name in columns])
    return make_table(columns, rows, title)
