"""The verb ``influence``: which samples of a labelled set are atypical, and what they are worth."""

from __future__ import annotations

import json
import shutil
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.config import configured, keep_options
from rarefy.cli.folding import FILES, IMAGES, MACHINE, SCORING
from rarefy.cli.frame import complain, print_, use_data_folder
from rarefy.cli.options import (
    AsJson,
    DataFolder,
    Device,
    MaxSeconds,
    Overwrite,
    Size,
    SkipBad,
    TestShare,
)
from rarefy.cli.scored_files import (
    CSV,
    CSV_FACTS,
    GALLERY,
    REMOVED,
    TABLE,
    UNFINISHED,
    score,
    write,
)
from rarefy.cli.scored_tables import advice, classes_table, describe, doubts_table, top_table
from rarefy.cli.streaming import streamed
from rarefy.core.errors import bad_value
from rarefy.core.text import as_argument, folder_name
from rarefy.core.writing import OutputFolder

if TYPE_CHECKING:
    from rarefy.tools.samples.samples import Samples

NEIGHBOURS = 10


@configured
def influence(
    data: Annotated[
        str,
        typer.Argument(
            help="digits, mnist, cifar10, cifar100; a folder of class folders; a table (.parquet, "
            ".csv, .tsv, .feather); .npy or .npz; hf:NAME."
        ),
    ],
    label: Annotated[
        str | None,
        typer.Option(help="Of a table or hf: set: the column of classes; label if not given."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Of a table: its feature columns, a,b,c; all numeric ones if not given.",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="Of a table: the column that names a sample.", rich_help_panel=IMAGES),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Of a .npy file: the .npy file with its labels.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="Of a hf: set: its image column.", rich_help_panel=IMAGES)
    ] = None,
    standardize: Annotated[
        bool | None,
        typer.Option(
            "--standardize/--no-standardize",
            help="Bring features to mean 0 and std 1: done for tables and arrays if not said, "
            "never for pixels; with --embed if said, for what it gives.",
            rich_help_panel=SCORING,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="train, test or all; train where there is one.", rich_help_panel=IMAGES),
    ] = None,
    embed: Annotated[
        str | None,
        typer.Option(
            help="Score what this model makes of the images: module:callable.",
            rich_help_panel=SCORING,
        ),
    ] = None,
    neighbours: Annotated[
        int,
        typer.Option(
            help="Nearest samples asked for their label; 0 saves that time.",
            rich_help_panel=SCORING,
        ),
    ] = NEIGHBOURS,
    check_labels: Annotated[
        bool,
        typer.Option(
            "--check-labels/--no-check-labels",
            help="Ask classifiers that have not seen a sample for its label; takes most time.",
            rich_help_panel=SCORING,
        ),
    ] = True,
    ddof: Annotated[
        int, typer.Option(help="Covariance divided by n - ddof: 0 or 1.", rich_help_panel=SCORING)
    ] = 1,
    memory: Annotated[
        float,
        typer.Option(help="GB that scoring may use besides the features.", rich_help_panel=MACHINE),
    ] = 1.0,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Of a .npy file or Parquet of any size: read it in pieces; scores alone, no page.",
        ),
    ] = False,
    device: Device = "auto",
    folder: DataFolder = None,
    size: Size = None,
    test_share: TestShare = None,
    skip_bad: SkipBad = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for what is written; runs/influence-DATA if not given."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write the table as CSV too.")] = False,
    gallery: Annotated[
        bool,
        typer.Option(
            "--gallery/--no-gallery", help="Write the page of pictures.", rich_help_panel=FILES
        ),
    ] = True,
    map_: Annotated[
        str,
        typer.Option(
            "--map",
            help="The page's map: pca or none.",
            rich_help_panel=FILES,
        ),
    ] = "pca",
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Find labels that may be wrong, and atypical samples.

    Where classifiers that have not seen a sample are sure of another label, that
    is suggested. Influence is what the covariance of the class loses without the
    sample (Xu & Chen). A page of pictures and a table are written. More:
    docs/influence.md.

    Example: [bold]rarefy influence digits --open[/]
    Example: [bold]rarefy influence flowers.parquet --label species --csv[/]
    """
    use_data_folder(folder)
    if not 0 < memory < 1e9:
        raise bad_value("memory", memory, "must be above 0 (GB) and below 1e9")
    if max_seconds is not None and not max_seconds > 0:
        raise bad_value("max_seconds", max_seconds, "must be more than 0")
    if stream:
        only_in_memory = {
            "names": names,
            "image": image,
            "split": split,
            "embed": embed,
            "neighbours": None if neighbours == NEIGHBOURS else neighbours,
            "check_labels": None if check_labels else False,
            "csv": csv or None,
            "map": None if map_ == "pca" else map_,
            "open": open_ or None,
            "size": size,
            "test_share": test_share,
            "skip_bad": skip_bad or None,
        }
        for option, value in only_in_memory.items():
            if value is not None:
                raise bad_value(option, value, "does not fit --stream")
        streamed(
            *(data, label, labels, columns, standardize, ddof, memory, device),
            *(out, overwrite, max_seconds, as_json),
        )
        return
    if open_ and not gallery:
        raise bad_value("open", True, "there is no page to open with --no-gallery")
    if map_ not in ("pca", "none"):
        raise bad_value("map", map_, "must be pca or none")
    from rarefy.tools.influence.scoring import ScoreSettings
    from rarefy.tools.samples.opening import open_samples

    began = time.monotonic()
    read: dict[str, Any] = {
        "split": split,
        "label": label,
        "labels": labels and str(labels),
        "columns": None if columns is None else columns.split(","),
        "names": names,
        "image": image,
        "size": size,
        "test_share": test_share,
        "skip_bad": skip_bad,
    }
    samples = open_samples(data, standardize=standardize if embed is None else False, **read)
    for note in samples.notes:
        complain(note, 0)
    chosen: list[Any] = [label, labels and str(labels), columns, names, image, standardize]
    chosen += [size, test_share, skip_bad]
    name = _folder_name(samples, embed, data, chosen)
    target = out if out is not None else Path("runs") / name
    written_to = OutputFolder(target, name, overwrite)
    names_of = [TABLE, *([CSV, CSV_FACTS] if csv else []), *([GALLERY] if gallery else [])]
    written_to.check(names_of, [data, labels or data], removed=REMOVED)
    if overwrite:
        shutil.rmtree(target / UNFINISHED, ignore_errors=True)
    deadline = None if max_seconds is None else began + max_seconds
    settings = ScoreSettings(ddof, neighbours, check_labels, int(memory * 1e9), device)
    scored = score(samples, embed, bool(standardize), settings, target, deadline)
    origin = {"data": data, "read": {name: value for name, value in read.items() if value}}
    written = write(scored, written_to, csv, gallery, map_, origin)
    shutil.rmtree(target / UNFINISHED, ignore_errors=True)
    keep_options(target)
    if as_json:
        typer.echo(json.dumps(describe(scored, written), indent=1))
    else:
        print_(classes_table(scored))
        if scored.table["label_issue"].any():
            print_(doubts_table(scored.table))
        print_(top_table(scored.table))
        for what, path in written.items():
            typer.echo(f"{what}: {path}")
        typer.echo(advice(scored.table))
        if "gallery" in written:
            then = f"rarefy clean {as_argument(data)} --picks FILE --out DIR"
            typer.echo(f"next: open the page, keep, drop or relabel, export (E); then {then}")
    if open_ and "gallery" in written:
        webbrowser.open(written["gallery"].resolve().as_uri())


def _folder_name(samples: Samples, embed: str | None, data: str, chosen: list[Any]) -> str:
    """One for each thing that can be scored, so that none replaces another."""
    words = ["influence", samples.name]
    words += [samples.split] if samples.split == "test" else []
    words += [embed] if embed else []
    return folder_name(*words, source=data, choices=chosen)
