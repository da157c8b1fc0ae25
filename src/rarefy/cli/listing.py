"""The verb ``studies``: which there are, and what one of them consists of."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.text import Text

from rarefy.cli.completing import study_names
from rarefy.cli.frame import app, exit_on_error, print_
from rarefy.cli.options import AsJson, Device
from rarefy.core.papers import paper_names
from rarefy.core.tables import Table

if TYPE_CHECKING:
    from rarefy.core.contracts import Study
    from rarefy.studies import Entry


@app.command()
@exit_on_error
def studies(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY]", help="Of this one everything.", autocompletion=study_names
        ),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """List the studies: paper, figures, title and what they need.

    With a name: its axes, parameters and scales, and how long each scale would
    take on this machine (tried for a second each).

    Example: [bold]rarefy studies[/]
    Example: [bold]rarefy studies benign-correlation[/]
    """
    from rarefy.studies import get_study, listed

    if name is not None:
        kind = get_study(name)
        _show_one(kind, listed()[name], device, as_json)
    elif as_json:
        typer.echo(json.dumps([_described(entry) for entry in listed().values()], indent=1))
    else:
        print_(_all(list(listed().values())))


def _described(entry: Entry) -> dict[str, Any]:
    words = ("name", "title", "lab", "shows", "needs", "headline")
    lists = {"papers": list(entry.papers), "claims": list(entry.claims)}
    return {word: getattr(entry, word) for word in words} | lists


def _where(entry: Entry) -> str:
    """What it shows of which paper; a study of a stranger may be of none."""
    return ", ".join(filter(None, (paper_names(entry.papers), entry.shows)))


def _all(entries: list[Entry]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    # a name is there to be copied and must not be broken
    table.add_column("study", no_wrap=True)
    table.add_column("what it is about, where it is in the paper, what it needs", overflow="fold")
    for lab in dict.fromkeys(sorted(entry.lab for entry in entries)):
        mine = [entry for entry in entries if entry.lab == lab]
        for entry in mine:
            about = Text(entry.title, "bold") + Text(
                f"\n{_where(entry)}\nneeds {entry.needs}", "not bold"
            )
            table.add_row(entry.name, about, end_section=entry is mine[-1])
    return table


def _show_one(kind: type[Study], entry: Entry, device: str, as_json: bool) -> None:
    from rarefy.core.parameters import parameters_of
    from rarefy.core.settings import resolve_device
    from rarefy.sweep.estimate import estimates, in_words
    from rarefy.sweep.grid import grid_of

    where = resolve_device(device)
    at = {scale: kind.at(scale) for scale in kind.scales}
    took = dict(estimates(at, where))
    scales = {}
    for scale, study in at.items():
        cells, steps = len(grid_of(study)), study.cost().steps_per_cell
        scales[scale] = {"cells": cells, "run_steps": cells * steps, "time": took[scale]}
    known = parameters_of(kind)
    if as_json:
        parameters = {
            one.name: {
                "default": one.default,
                "axis": one.name in kind.axes,
                "meaning": one.meaning,
                "unit": one.unit,
                "allowed": [rule.allowed for rule in one.rules],
            }
            for one in known.values()
        }
        told = {**_described(entry), "version": kind.version, "axes": list(kind.axes)}
        typer.echo(json.dumps({**told, "scales": scales, "parameters": parameters}, indent=1))
        return
    typer.echo(f"{entry.name}: {entry.title}")
    typer.echo(f"{_where(entry)}; claims {', '.join(entry.claims)}")
    typer.echo(f"needs {entry.needs}\n")
    typer.echo(f"{textwrap.fill(kind.paper_says, 79)}\n")
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("scale", no_wrap=True)
    for head in ("cells", "run-steps"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(f"about how long here ({where.type})", overflow="fold")
    for scale, size in scales.items():
        numbers = [f"{size[word]:,}" for word in ("cells", "run_steps")]
        table.add_row(scale, *numbers, in_words(size["time"]))
    print_(table)
    for axes in (True, False):
        table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("axis" if axes else "parameter", no_wrap=True)
        table.add_column("default", overflow="fold", ratio=2)
        table.add_column("meaning, and what it may be", overflow="fold", ratio=3)
        for one in known.values():
            if (one.name in kind.axes) == axes:
                rules = "; ".join(rule.allowed for rule in one.rules)
                about = ". ".join(filter(None, (one.meaning, one.unit, rules)))
                table.add_row(one.name, _value(one.default), about)
        print_(table)


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
