"""``rarefy influence --remove``: train without some of the samples, and print what it costs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rarefy.cli.config import keep_options
from rarefy.cli.frame import complain, numbers, print_, run_study
from rarefy.core.errors import OutOfTime
from rarefy.core.text import as_argument, folder_name

if TYPE_CHECKING:
    from rarefy.core.tables import Table


@dataclass(frozen=True)
class Removing:
    """What was asked for."""

    data: str
    label: str
    labels: str
    columns: str
    fractions: str
    by: str
    within: str
    network: str
    epochs: int | None
    seeds: int


def with_folder_options(
    data: str, size: int | None, test_share: float | None, skip_bad: bool
) -> str:
    from rarefy.tools.image_data import with_options

    return with_options(data, size, test_share, skip_bad)


def removed(
    asked: Removing,
    out: Path | None,
    device: str,
    overwrite: bool,
    max_seconds: float | None,
    jobs: int | None,
    threads: int | None,
    as_json: bool,
) -> None:
    from rarefy.tools.image_data import split_options
    from rarefy.tools.influence.removal_data import Source, parts_of
    from rarefy.tools.influence.removal_experiment import RemovalExperiment, usual_training
    from rarefy.tools.influence.removal_tables import tables as removal_tables

    fractions = numbers("remove", asked.fractions)
    source = Source(asked.data, asked.label, asked.labels, asked.columns)
    parts = parts_of(source)
    experiment = RemovalExperiment.at(
        "quick",
        data=asked.data,
        label=asked.label,
        labels=asked.labels,
        columns=asked.columns,
        network=asked.network,
        by=tuple(word.strip() for word in asked.by.split(",")),
        within=(asked.within,),
        fraction=tuple(dict.fromkeys((0.0, *fractions))),
        seeds=asked.seeds,
        **usual_training(source, parts, asked.network, asked.epochs),
    )
    if parts.copied:
        complain(
            f"{parts.copied} test samples have a copy in the training part (with another label, or "
            "as the set was split): they are easier than new ones",
            0,
        )
    words = ("removal", parts.train.name, asked.network)
    read_from, options = split_options(asked.data)
    chosen = (asked.label, asked.labels, asked.columns, options)
    name = folder_name(*words, source=read_from, choices=chosen)
    store = out if out is not None else Path("runs") / name
    execution = run_study(
        experiment, "quick", store, device, "float32", overwrite, max_seconds, jobs, threads=threads
    )
    keep_options(execution.path)
    tables = removal_tables(experiment, execution.dataset) if execution.cells_done else []
    if as_json:
        described: dict[str, Any] = {"store": str(execution.path), "finished": execution.finished}
        for table in tables:
            described[table.name] = [
                dict(zip(table.columns, row, strict=True)) for row in table.rows
            ]
        typer.echo(json.dumps(described, indent=1, default=str))
    elif tables:
        for table in tables:
            print_(_as_rich(table))
        draws = f"rarefy report {as_argument(execution.path)} draws it"
        typer.echo(f"store: {execution.path} ({draws})")
    if not execution.finished:
        raise OutOfTime(execution.note)


def _as_rich(table: Any) -> Table:
    from rarefy.core.tables import Table

    found = Table(title=table.title, caption=table.caption)
    for head in table.columns:
        found.add_column(str(head))
    for row in table.rows:
        found.add_row(*map(str, row))
    return found
