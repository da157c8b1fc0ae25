"""The verb ``data``: which image sets are here, fetching them, looking into one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.frame import app, exit_on_error, print_
from rarefy.cli.options import AsJson
from rarefy.core.writing import check_output

if TYPE_CHECKING:
    from rarefy.data.images.checking import Examination, LevelCounts, SplitCounts
    from rarefy.data.images.image_set import ImageData

data_app = typer.Typer(add_completion=False, rich_markup_mode="rich")
app.add_typer(data_app, name="data")

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data-folder",
        metavar="DIR",
        help="Folder of the data sets (default: the setting RAREFY_DATA, or the user's cache).",
    ),
]


@data_app.callback(invoke_without_command=True)
@exit_on_error
def data(context: typer.Context, folder: DataFolder = None, as_json: AsJson = False) -> None:
    """List the image sets that are here, and how to get others.

    A set is a name (digits, mnist, cifar10, cifar100), or any folder of your own
    with a folder of images for each class: DIR/train/CLASS/*.png and
    DIR/test/CLASS/*.png, or only DIR/CLASS/*.png, of which a fifth is then kept
    for testing.

    Example: [bold]rarefy data[/]
    Example: [bold]rarefy data fetch cifar10 --data-folder ~/sets[/]
    Example: [bold]rarefy data check photos --sheet photos.png[/]
    """
    context.obj = folder
    if context.invoked_subcommand is not None:
        return
    from rarefy.data.images.catalog import SETS, describe_set
    from rarefy.data.images.places import data_folder

    entries = [describe_set(name, folder) for name in SETS]
    place = data_folder(folder)
    if as_json:
        typer.echo(json.dumps({"folder": str(place), "sets": entries}, indent=1))
        return
    print_(_table(entries, place))
    there = "" if place.is_dir() else " (not there yet)"
    typer.echo(f"data folder: {place}{there}")
    typer.echo("sizes are the official ones; rarefy data check NAME counts what is here")


@data_app.command()
@exit_on_error
def fetch(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="mnist, cifar10 ...")],
    folder: DataFolder = None,
) -> None:
    """Fetch official archives, check them, put them in place.

    Without a network the message says which file to put where.

    Example: [bold]rarefy data fetch mnist cifar10[/]
    """
    from rarefy.core.errors import unknown
    from rarefy.data.images.catalog import SETS, fetch_set
    from rarefy.data.images.places import data_folder

    place = data_folder(folder if folder is not None else context.obj)
    for name in names:
        if name not in SETS:
            raise unknown("data set", name, SETS)
    for name in names:
        brought = fetch_set(name, place)
        if brought:
            for path in brought:
                typer.echo(f"{name}: {path}")
        elif SETS[name].remote:
            typer.echo(f"{name}: is already in {place}")
        else:
            typer.echo(f"{name}: needs no fetching")


@data_app.command()
@exit_on_error
def check(
    context: typer.Context,
    which: Annotated[str, typer.Argument(metavar="NAME_OR_FOLDER")],
    folder: DataFolder = None,
    size: Annotated[
        int | None, typer.Option(help="Of a folder: bring images to this side.")
    ] = None,
    test_share: Annotated[
        float | None,
        typer.Option(help="Of a folder without a split: this share of each class is for testing."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Bad files are listed, but are no failure.")
    ] = False,
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw some images of each class.")
    ] = None,
    hierarchy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labels above or below the classes: CSV or JSON."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load a whole set and tell what is in it, and what is bad.

    Exit code 1 if files are bad. The fingerprint stands for images, labels and
    split: two people with the same one have the same data.

    Example: [bold]rarefy data check digits --sheet digits.png[/]
    Example: [bold]rarefy data check photos --size 64[/]
    Example: [bold]rarefy data check photos --hierarchy parents.csv[/]
    """
    if sheet is not None:
        check_output(sheet, "sheet", option="sheet")
    given = {"size": size, "test_share": test_share}
    options = {name: value for name, value in given.items() if value is not None}
    place = folder if folder is not None else context.obj
    loaded = _load(which, place, options)

    from rarefy.data.hierarchy.reading import with_hierarchy
    from rarefy.data.images.checking import examine

    loaded = with_hierarchy(loaded, hierarchy if hierarchy is not None else "")
    examination = examine(loaded)
    if as_json:
        typer.echo(json.dumps(examination.as_json(), indent=1))
    else:
        _show(examination)
    if sheet is not None:
        from rarefy.data.images.sheet import write_sheet

        rows = write_sheet(loaded, sheet)
        part = "" if rows == examination.classes else f" (the first {rows} classes)"
        typer.echo(f"sheet: {sheet}{part}", err=as_json)
    if loaded.left_out and not skip_bad:
        raise typer.Exit(1)


def _load(which: str, place: Path | None, options: dict[str, Any]) -> ImageData:
    """A folder's bad files are shown with the rest, so they do not stop the loading."""
    from rarefy.data.images.catalog import SETS, class_folder, folder_options, load_images
    from rarefy.data.images.folders import read_folder

    if which in SETS:
        return load_images(which, place, **options)
    return read_folder(class_folder(which), folder_options({**options, "skip_bad": True}))


def _table(entries: list[dict[str, Any]], place: Path) -> Any:
    from rarefy.core.tables import make_table
    from rarefy.data.images.listing import spell_bytes

    columns = {"set": "", "here": "", "train": ",", "test": ",", "classes": "d", "shape": ""}
    rows = (
        (
            *(entry["name"], "yes" if entry["present"] else "no"),
            *(entry["train"], entry["test"], entry["classes"]),
            "x".join(map(str, entry["shape"])),
            spell_bytes(entry["bytes"]) if entry["bytes"] else "-",
            _below(entry["where"], place),
        )
        for entry in entries
    )
    return make_table({**columns, "on disk": "", "where, or how to get it": ""}, rows)


def _below(where: str, place: Path) -> str:
    """A path as seen from the data folder, which stands below the table."""
    path = Path(where)
    return path.relative_to(place).as_posix() if path.is_relative_to(place) else where


def _show(found: Examination) -> None:
    lines = [
        f"{found.name} from {found.source}",
        f"images of {'x'.join(map(str, found.shape))}, {found.classes} classes",
        f"train: {_counts(found.train)}",
        f"test: {_counts(found.test)}",
        *(_level(name, level) for name, level in found.hierarchy.items() if found.levels),
        f"in both train and test: {found.shared} test images; "
        f"under more than one class: {found.contradictions} images",
        f"mean {_numbers(found.mean)}, std {_numbers(found.std)} of the training pixels in [0, 1]",
        f"fingerprint {found.fingerprint}",
        *(f"note: {note}" for note in found.notes),
        *(f"bad file: {file}" for file in found.bad_files),
    ]
    typer.echo("\n".join(line.encode("utf-8", "replace").decode() for line in lines))


def _counts(split: SplitCounts) -> str:
    return f"{split.images:,} images, {_spread(split)} per class, {split.copies} exact copies"


def _spread(counts: SplitCounts | LevelCounts) -> str:
    spread = f"{counts.fewest:,} ({counts.fewest_class}) to {counts.most:,} ({counts.most_class})"
    return f"{counts.most:,}" if counts.fewest == counts.most else spread


def _level(name: str, level: LevelCounts) -> str:
    if level.agreement == 1:
        within = f", in {level.parent!r}" if level.parent else ""
    else:
        within = f", not in {level.parent!r} (agreement {level.agreement:.4f})"
    return f"level {name!r}: {level.classes} classes, {_spread(level)} per class{within}"


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.4f}" for value in values)
