"""The verb ``checkup``: all tools once, and the three things to do first."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from rarefy.cli.config import configured, keep_options
from rarefy.cli.frame import typed_again, use_data_folder
from rarefy.cli.options import AsJson, DataFolder, Device, MaxSeconds, Overwrite, Size, TestShare
from rarefy.core.errors import OutOfTime
from rarefy.core.writing import check_output

PARTS = "set, samples, learning, features, finer"
PAGE = "checkup.html"


@configured
def checkup(
    data: Annotated[
        str,
        typer.Argument(
            help="digits, mnist, cifar10, cifar100, a folder of class folders, a table or an array "
            "file."
        ),
    ],
    only: Annotated[str | None, typer.Option(help=f"Parts to run: {PARTS}.")] = None,
    skip: Annotated[str | None, typer.Option(help="Parts to leave out.")] = None,
    hierarchy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Parents of the classes: CSV, JSON, is-a.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Of a table: the column of classes; label if not given."),
    ] = None,
    size: Size = None,
    test_share: TestShare = None,
    device: Device = "auto",
    folder: DataFolder = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for what is found; runs/checkup-DATA if not given.")
    ] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """All tools once on a labelled set: the three things to do first.

    Imbalance, copies and broken files; labels in doubt and atypical samples; what
    a quick network learns per class, with and without pruning; what features know
    without labels; whether finer labels might help. Each thing to do comes with
    its evidence and its command. Stopped or killed, the same command goes on.

    Example: [bold]rarefy checkup digits --open[/]
    Example: [bold]rarefy checkup my_photos --skip features[/]
    Example: [bold]rarefy checkup wine.csv --label kind[/]
    """
    use_data_folder(folder)
    from rarefy.report.checkup import OF, write_checkup
    from rarefy.tools.checkup.api import checkup as look

    if out is not None:
        check_output(out / PAGE, OF, overwrite=overwrite)
    found = look(
        data,
        hierarchy=hierarchy,
        label=label,
        only=_several(only),
        skip=_several(skip),
        size=size,
        test_share=test_share,
        device=device,
        out=out,
        overwrite=overwrite,
        max_seconds=max_seconds,
        say=lambda words: typer.echo(words, err=True),
    )
    keep_options(found.path)
    page = write_checkup(found.path / PAGE, found, overwrite)
    if as_json:
        typer.echo(json.dumps(found.described(), indent=1))
    else:
        typer.echo(f"page: {page}")
        for place, one in enumerate(found.first, 1):
            typer.echo(f"{place}. {one.what}: {one.evidence}\n   {one.command}")
        typer.echo(found.sentence)
    if open_:
        webbrowser.open(page.resolve().as_uri())
    if found.failed:
        raise typer.Exit(1)
    if not found.finished:
        missing = ", ".join(found.missing)
        raise OutOfTime(f"time is over: {missing} not run; go on with: {typed_again()}")


def _several(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]
