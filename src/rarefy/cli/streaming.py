"""``rarefy influence --stream``: scores of data that do not fit into memory."""

from __future__ import annotations

import json
import time
from pathlib import Path

import typer

from rarefy.cli.config import keep_options
from rarefy.cli.frame import complain, print_
from rarefy.cli.scored_files import TABLE
from rarefy.core.tables import make_table
from rarefy.core.text import folder_name, printable

SHOWN = 10
"""Classes named on the terminal, the largest ones."""


def streamed(
    data: str,
    label: str | None,
    labels: Path | None,
    columns: str | None,
    standardize: bool | None,
    ddof: int,
    memory: float,
    device: str,
    out: Path | None,
    overwrite: bool,
    max_seconds: float | None,
    as_json: bool,
) -> None:
    from rarefy.core.progress import Progress
    from rarefy.tools.influence.streaming import stream_influence

    began = time.monotonic()
    chosen = [label, labels and str(labels), columns, standardize, "stream"]
    name = folder_name("influence", Path(data).stem, source=data, choices=chosen)
    path = (out if out is not None else Path("runs") / name) / TABLE
    with Progress(f"influence of {printable(Path(data).name)}", 1.0) as progress:
        found = stream_influence(
            data,
            labels,
            out=path,
            label=label,
            columns=None if columns is None else columns.split(","),
            standardize=standardize is not False,
            ddof=ddof,
            memory=int(memory * 1e9),
            device=device,
            overwrite=overwrite,
            progress=progress.advance,
            deadline=None if max_seconds is None else began + max_seconds,
        )
    keep_options(path.parent)
    for note in found.notes:
        complain(note, 0)
    each = zip(found.classes, found.counts.tolist(), found.highest.tolist(), strict=True)
    classes = [(printable(name), count, None if row < 0 else row) for name, count, row in each]
    if as_json:
        told = {
            "samples": len(found),
            "classes": [
                dict(zip(("class", "samples", "highest"), one, strict=True)) for one in classes
            ],
            "notes": list(found.notes),
            "seconds": round(found.seconds, 2),
            "written": {"table": str(path)},
        }
        typer.echo(json.dumps(told, indent=1))
        return
    title = f"{len(found):,} samples, {len(classes):,} classes"
    columns_ = {"class": "", "samples": ",", "row with the highest score": "d"}
    shown = sorted(classes, key=lambda one: -one[1])[:SHOWN]
    more = f"; the {SHOWN} largest" if len(classes) > SHOWN else ""
    print_(make_table(columns_, shown, title + more))
    typer.echo(f"table: {path}")
