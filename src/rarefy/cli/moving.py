"""The verbs ``pack`` and ``unpack``: a run that goes on elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarefy.cli.frame import app, exit_on_error
from rarefy.cli.options import AsJson, Overwrite
from rarefy.core.text import as_argument

if TYPE_CHECKING:
    from rarefy.sweep.moving import Packed

ALONG = {"networks": "saved networks", "race": "the race of --method auto"}


@app.command()
@exit_on_error
def pack(
    store: Annotated[Path, typer.Argument(help="The store of a run, say runs/pretrain-digits.")],
    folder: Annotated[Path, typer.Argument(help="A new folder for the parts.")],
    part_mb: Annotated[float, typer.Option(help="No part is larger, in millions of bytes.")] = 15.0,
    as_json: AsJson = False,
) -> None:
    """Make a run that was stopped small enough to move to another machine.

    The finished cells and the trainings under way, in parts of a few megabytes
    with a manifest of their checksums. Weights and momentum of trainings under
    way are rounded to bf16, all else is exact. Networks in STORE-networks go
    along; a folder of --save that is called otherwise does not.

    Example: [bold]rarefy pack runs/pretrain-cifar10 moved[/]
    """
    from rarefy.sweep import moving

    found = moving.pack(store, folder, part_mb)
    there = f"rarefy unpack {as_argument(folder.name)} {as_argument(store)}"
    _say(found, f"packed in {folder}; to go on elsewhere: {there}", as_json)


@app.command()
@exit_on_error
def unpack(
    folder: Annotated[Path, typer.Argument(help="What rarefy pack wrote, with all its parts.")],
    store: Annotated[Path, typer.Argument(help="Where the store is to be, as the run names it.")],
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Put a run back that rarefy pack made small.

    The command that began it then goes on. A pack with a damaged, missing or
    foreign part is refused, and nothing is written.

    Example: [bold]rarefy unpack moved runs/pretrain-cifar10[/]
    """
    from rarefy.sweep import moving

    found = moving.unpack(folder, store, overwrite)
    _say(found, f"unpacked as {store}; the command that began the run goes on", as_json)


def _say(found: Packed, where: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**found._asdict(), "megabytes": found.megabytes}, indent=1))
        return
    parts = f"{len(found.parts)} part" + "s" * (len(found.parts) != 1)
    files = f"{found.under_way} file" + "s" * (found.under_way != 1)
    typer.echo(
        f"{found.study}: {found.done} of {found.cells} cells, {files} of trainings under way, "
        f"{''.join(f'{ALONG[what]}, ' for what in found.along)}"
        f"{found.megabytes:.1f} MB in {parts}\n{where}"
    )
