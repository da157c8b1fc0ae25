"""Tables for a terminal: what studies there are, what their verdicts came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.text import Text

from rarefy.core.contracts import Study, Verdict
from rarefy.core.tables import Table, make_table
from rarefy.sweep.grid import grid_of

COLOURS = {"holds": "green", "fails": "red", "inconclusive": "yellow", "not-run": "dim"}


def overview(kind: type[Study]) -> dict[str, Any]:
    """A study in words and numbers, as JSON can hold it."""
    scales: dict[str, dict[str, int]] = {}
    for scale in kind.scales:
        study = kind.at(scale)
        cells, cost = len(grid_of(study)), study.cost()
        scales[scale] = {
            "cells": cells,
            "run_steps": cells * cost.steps_per_cell,
            "bytes_per_cell": cost.bytes_per_cell,
        }
    return {
        "name": kind.name,
        "title": kind.title,
        "lab": kind.lab,
        "claims": list(kind.claims),
        "version": kind.version,
        "headline": kind.headline,
        "needs": kind.needs,
        "axes": list(kind.axes),
        "scales": scales,
    }


def studies_table(entries: Iterable[dict[str, Any]]) -> Table:
    entries = list(entries)
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    # a name is there to be copied and must not be broken; the title below it may be
    longest = max((len(entry["name"]) for entry in entries), default=1)
    table.add_column("study", ratio=3, min_width=longest, overflow="fold")
    table.add_column("lab", overflow="fold")
    table.add_column("claims", ratio=1, overflow="fold")
    table.add_column("scale", no_wrap=True)
    for name in ("cells", "run-steps"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in entries:
        scales = entry["scales"]
        table.add_row(
            Text(entry["name"], "bold") + Text(f"\n{entry['title']}", "not bold"),
            entry["lab"],
            " ".join(entry["claims"]),
            "\n".join(scales),
            "\n".join(short_number(size["cells"]) for size in scales.values()),
            "\n".join(short_number(size["run_steps"]) for size in scales.values()),
            end_section=True,
        )
    return table


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


def short_number(count: float) -> str:
    """``950``, ``12k``, ``3.4M``."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= limit:
            return f"{count / (1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{count:.0f}"
