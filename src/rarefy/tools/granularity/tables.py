"""The comparison of pre-training labels for a terminal, and its curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.core.tables import Table, make_table
from rarefy.tools.granularity.rows import KINDS

Rows = Sequence[Mapping[str, Any]]


def granularity_table(rows: Rows, title: str) -> Table:
    """At most 80 columns, where names of labels are short."""
    columns = {
        "labels": "",
        "classes": ",",
        "least": ",",
        "fit": ".0f",
        "target": ".2f",
        "gain, points": " ",
        "probe": ".1f",
        "worst": ".1f",
    }
    shown = (
        (
            *(row[name] for name in ("labels", "classes", "smallest")),
            None if row["agreement"] is None else 100 * row["agreement"],
            *(row["accuracy"], _gain(row), row["probe_accuracy"], row["worst_subclass"]),
        )
        for row in rows
    )
    seeds = sorted({row["n"] for row in rows})
    n = f"n = {seeds[0]}" if len(seeds) == 1 else f"n = {seeds[0]} to {seeds[-1]}"
    caption = (
        f"{n}, by seed; least: images of the smallest class; fit: agreement with the target (%); "
        "target: accuracy (%), chosen on held-out images; gain: over re-training, seed by seed, "
        "95 % interval (corrected for the number of levels in the sentence); probe: linear, on "
        "frozen features; worst: worst subclass"
    )
    return make_table(columns, shown, title, caption)


def _gain(row: Mapping[str, Any]) -> str:
    if row["gain"] is None:
        return "-"
    ends = row["gain_interval"] or []
    largest = max(map(abs, (row["gain"], *ends)))
    form = "+.2f" if largest < 10 else "+.1f" if largest < 100 else "+.0f"
    low_high = f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else ""
    return f"{row['gain']:{form}}{low_high}"


def error_picture(rows: Rows, target: str) -> Picture:
    """Target error over the number of pre-training classes, one line per kind of hierarchy; the
    baselines as level lines."""
    known = [row for row in rows if row["accuracy"] is not None]
    kinds = dict.fromkeys(row["kind"] for row in known if row["kind"] not in KINDS.values())
    curves = [_curve(kind, [row for row in known if row["kind"] == kind]) for kind in kinds]
    widest = [row["classes"] for row in known]
    for row in known:
        if row["kind"] in KINDS.values():
            ends = np.array([min(widest), max(widest)], dtype=float)
            error = np.full(2, 100 - row["accuracy"])
            style = "dashed" if row["kind"] == "re-training" else "dotted"
            curves.append(Curve(row["kind"], ends, error, role="baseline", style=style))
    panel = Lines(curves, "classes of the pre-training labels", "target error, %", x_log=True)
    return Picture(
        "granularity",
        f"Error on {target}, by how fine the pre-training labels were",
        "Means over seeds and 95 % intervals. Below the dashed line: better than re-training on "
        "the target labels.",
        (panel,),
    )


def _curve(kind: str, rows: Rows) -> Curve:
    ordered = sorted(rows, key=lambda row: row["classes"])
    ends = [row["accuracy_interval"] or [np.nan, np.nan] for row in ordered]
    return Curve(
        kind,
        np.array([row["classes"] for row in ordered], dtype=float),
        np.array([100 - row["accuracy"] for row in ordered]),
        np.array([100 - high for _, high in ends]),
        np.array([100 - low for low, _ in ends]),
        role=kind,
    )
