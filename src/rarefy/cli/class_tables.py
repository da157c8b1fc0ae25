"""The judging table per class for a terminal, rarest class first, and what not to lean on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from rarefy.cli.frame import print_
from rarefy.core.tables import Table, make_table

if TYPE_CHECKING:
    from rarefy.measure.class_report import ClassReport

MOST = 12
"""Classes that a terminal shows, the rarest."""


def class_table(
    report: ClassReport, title: str, beside: Mapping[str, ClassReport] | None = None
) -> Table:
    """At most 80 columns where names are short; ``beside``: others, with their recall alone."""
    others = {} if beside is None else beside
    recalls = {name: one.table.set_index("class")["recall"] for name, one in others.items()}
    columns = {"class": "", "group": "", "train": ",", "n": ",", "recall": " "}
    columns |= dict.fromkeys(("precision", "answered", *recalls), ".1f")
    rarest = report.table.iloc[::-1].head(MOST)
    lines = [
        [
            *(row[name] for name in ("class", "group", "train", "n")),
            f"{row['recall']:.3g} [{row['recall_low']:.0f}, {row['recall_high']:.0f}]",
            *(row[name] for name in ("precision", "answered")),
            *(one.get(row["class"]) for one in recalls.values()),
        ]
        for row in rarest.to_dict("records")
    ]
    more = len(report.table) - len(rarest)
    caption = (
        "rarest first; train, n: training and test images; recall (with a 95 % interval over test "
        "images) and precision in per cent, means over seeds; answered: so often"
        + (f"; recall of {', '.join(recalls)} beside it" if recalls else "")
        + (f"; {more} larger classes: --json" if more else "")
    )
    return make_table(columns, lines, title, caption)


def print_chosen(judged: Mapping[str, ClassReport], choice: str | None) -> None:
    """What is chosen, or else the best, beside two others."""
    if not judged:
        return
    best = max(judged, key=lambda one: judged[one].summary.balanced_accuracy)
    name = choice if choice is not None and choice in judged else best
    others = [one for one in judged if one != name][:2]
    print_judged(judged[name], name, {one: judged[one] for one in others})


def print_judged(
    report: ClassReport, name: str, beside: Mapping[str, ClassReport] | None = None
) -> None:
    """The table of ``name`` and its warnings."""
    print_(class_table(report, f"{name}, per class", beside))
    for warning in report.warnings:
        typer.echo(f"warning: {name}: {warning}")
