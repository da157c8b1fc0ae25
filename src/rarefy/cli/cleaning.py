"""The verb ``clean``: decisions made in a gallery become a cleaned data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.config import configured, keep_options, options_file
from rarefy.cli.folding import IMAGES
from rarefy.cli.frame import complain, print_, use_data_folder
from rarefy.cli.options import AsJson, DataFolder
from rarefy.core.errors import bad_value
from rarefy.core.tables import Table, make_table
from rarefy.core.writing import remove_output

if TYPE_CHECKING:
    from rarefy.tools.clean.cleaning import Cleaned

SHOWN = 20
"""Classes that are printed; those that changed come first."""


@configured
def clean(
    data: Annotated[
        str | None,
        typer.Argument(help="The data that the page was made of: what rarefy influence was given."),
    ] = None,
    picks: Annotated[
        Path | None, typer.Option(help="The decisions: the file that the page exported.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the cleaned set; must not be there yet.")
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Of a folder: copy files instead of linking to them.")
    ] = False,
    label: Annotated[
        str | None,
        typer.Option(
            help="Of a table: its label column; what the picks say if not given.",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Of a .npy file: its labels; what the picks say if not given.",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Write it even if a class loses its last sample.")
    ] = False,
    undo: Annotated[
        Path | None,
        typer.Option(help="Take it back: remove this folder, if it is as rarefy clean wrote it."),
    ] = None,
    folder: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a cleaned data set of the decisions made in a gallery.

    1. [bold]rarefy influence my_photos --open[/] makes the page.
    2. There samples are kept, dropped or relabelled; E exports the decisions.
    3. This command applies them, in the layout that the data came in: a
    folder of class folders (of links, or of copies), a table, arrays. A set
    known by name, such as digits, becomes a folder of class folders.

    The data themselves are never changed. Samples are found by their
    content; picks of other data are refused. clean-log.csv in the new folder
    says what was done to which sample, and why.

    Example: [bold]rarefy clean wine.csv --picks wine-picks.json --out wine-clean[/]
    Example: [bold]rarefy clean --undo wine-clean[/]
    """
    use_data_folder(folder)
    if undo is not None:
        others = {"data": data, "picks": picks, "out": out, "label": label, "labels": labels}
        for option, value in others.items():
            if value is not None:
                raise bad_value(option, str(value), "does not fit --undo, which takes a folder")
        _undo(undo, as_json)
        return
    needed = {
        "data": (data, "name the data that the page was made of"),
        "picks": (picks, "name the file that the page exported (E)"),
        "out": (out, "name a folder for the cleaned set"),
    }
    for option, (value, what) in needed.items():
        if value is None:
            raise bad_value(option, value, what)
    from rarefy.tools.clean.cleaning import clean as cleaned

    assert data is not None and picks is not None and out is not None
    options = {"label": label, "labels": None if labels is None else str(labels)}
    found = cleaned(data, picks, out, copy=copy, allow_empty=allow_empty, **options)
    keep_options(found.path)
    for note in found.notes:
        complain(note, 0)
    if as_json:
        typer.echo(json.dumps(described(found), indent=1))
        return
    print_(classes_table(found))
    typer.echo(str(found) + (" (done before: nothing was written)" if found.again else ""))
    typer.echo(f"cleaned: {found.path} (log: {found.log_path.name})")
    typer.echo(f"undo: {found.undo}")
    typer.echo(f"next: {found.next}")


def described(found: Cleaned) -> dict[str, Any]:
    return {
        "kept": found.kept,
        "dropped": found.dropped,
        "relabelled": found.relabelled,
        "classes": found.classes.to_dict("records"),
        "path": str(found.path),
        "log": str(found.log_path),
        "done_before": found.again,
        "notes": list(found.notes),
        "undo": found.undo,
        "next": found.next,
    }


def classes_table(found: Cleaned) -> Table:
    table = found.classes
    changed = (table["before"] - table["after"]).abs().sort_values(ascending=False, kind="stable")
    some = table.loc[changed.index[:SHOWN]].sort_index()
    rows = [tuple(row) for row in some.itertuples(index=False, name=None)]
    rest = len(table) - len(some)
    caption = f"and {rest:,} more, which changed less" if rest else ""
    return make_table({"class": "", "before": ",", "after": ","}, rows, "samples", caption)


def _undo(folder: Path, as_json: bool) -> None:
    from rarefy.tools.clean.recording import undo

    done = undo(folder)
    remove_output(options_file(folder))
    if as_json:
        told = {"removed": str(done.path), "files": done.files, "data": done.data}
        typer.echo(json.dumps({**told, "next": done.command}, indent=1))
        return
    typer.echo(f"removed: {done.path} ({done.files:,} files); {done.data} was never changed")
    if done.command.startswith("rarefy "):  # not a script of somebody's
        typer.echo(f"again: {done.command}")
