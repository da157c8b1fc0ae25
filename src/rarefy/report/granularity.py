"""The page of ``rarefy granularity``: sentence, warnings, curve and table, in one offline file."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rarefy import __version__
from rarefy.core.picture import Picture
from rarefy.core.writing import write_output
from rarefy.report import static
from rarefy.report.templating import template

COLUMNS = {
    "labels": "pre-trained on",
    "kind": "kind",
    "classes": "classes",
    "smallest": "images of the smallest",
    "agreement": "agreement with the target",
    "accuracy": "accuracy, % [95 % interval]",
    "gain": "gain, points [95 % interval]",
    "n": "n",
    "probe_accuracy": "linear probe, %",
    "worst_subclass": "worst subclass, %",
    "worst_tenth": "worst tenth, %",
    "images_shown": "cost: images shown",
}
CLASSES = {
    "class": "target class",
    "train": "training images",
    "n": "test images",
    "recall": "recall, % [95 % interval]",
    "precision": "precision, % [95 % interval]",
    "answered": "answered",
}
OF = "granularity"
"""What the file is recorded as."""


def write_granularity(
    path: Path | str,
    advice: Mapping[str, Any],
    picture: Picture,
    facts: Sequence[tuple[str, object]] = (),
    overwrite: bool = False,
    classes: Mapping[str, pd.DataFrame] | None = None,
) -> Path:
    """Write the page of an ``Advice`` (as ``described``); ``facts`` say how it was measured;
    ``classes`` are judging tables by name."""
    drawn = static.as_svg(static.draw_panel(picture.panels[0]))
    page = template("granularity.html.j2").render(
        advice=advice,
        about=dict(facts),
        picture=picture,
        image=f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}",
        columns=list(COLUMNS.values()),
        rows=[[_cell(row, name) for name in COLUMNS] for row in advice["rows"]],
        classes={name: _by_class(table) for name, table in (classes or {}).items()},
        class_columns=list(CLASSES.values()),
        facts=facts,
        version=__version__,
    )
    write_output(Path(path), page, OF, overwrite)
    return Path(path)


def _by_class(table: pd.DataFrame) -> list[list[str]]:
    """Rarest first."""
    rows = table.iloc[::-1].to_dict("records")
    for row in rows:
        for name in ("recall", "precision"):
            row[f"{name}_interval"] = [row[f"{name}_low"], row[f"{name}_high"]]
    return [[_cell(row, name) for name in CLASSES] for row in rows]


def _cell(row: Mapping[str, Any], name: str) -> str:
    value, ends = row[name], row.get(f"{name}_interval")
    if value is None or value != value or isinstance(value, str):
        return value if isinstance(value, str) and value else "-"
    if not isinstance(value, float):
        return f"{value:,}"
    form = "+.2f" if name == "gain" else ".2f"
    return f"{value:{form}}" + (f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else "")
