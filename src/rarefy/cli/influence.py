"""The verb ``influence``: which samples of a labelled set are atypical, and what they are worth."""

from __future__ import annotations

import json
import shutil
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.frame import (
    AsJson,
    DataFolder,
    Device,
    Jobs,
    MaxSeconds,
    Overwrite,
    Size,
    SkipBad,
    TestShare,
    app,
    complain,
    print_,
    run_study,
    told,
    use_data_folder,
)
from rarefy.core.errors import UsageError, bad_value

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from rarefy.tools.influence.scoring import Scored
    from rarefy.tools.samples.samples import Samples

TOP = 10
"""Samples named on the terminal."""
UNFINISHED = ".unfinished"
"""In the folder that is written: what an interrupted command goes on from."""
LITTLE_SAID = (
    "most samples' nearest neighbours have other labels: distances between features as they are "
    "say little here, and no label is called in doubt by them; --embed scores what a model sees"
)
WORTH_SAYING = 5.0
"""Seconds from which a forecast is told before the work."""


@app.command()
@told
def influence(
    data: Annotated[
        str,
        typer.Argument(
            help="digits, mnist, cifar10, cifar100; a folder of class folders; a table (.parquet, "
            ".csv, .tsv, .feather); .npy or .npz; hf:NAME."
        ),
    ],
    label: Annotated[
        str | None, typer.Option(help="Of a table or hf: set: the column with the classes.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Of a table: its feature columns, a,b,c; all numeric ones.")
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Of a table: the column that names a sample.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Of a .npy file: the .npy file with its labels.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Of a hf: set: its image column.")] = None,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Of a table: bring columns to std 1 first.")
    ] = False,
    split: Annotated[
        str | None, typer.Option(help="train, test or all; train where there is one.")
    ] = None,
    embed: Annotated[
        str | None,
        typer.Option(help="Score what this model makes of the images: module:callable."),
    ] = None,
    neighbours: Annotated[
        int, typer.Option(help="Nearest samples asked for their label; 0 saves that time.")
    ] = 10,
    ddof: Annotated[int, typer.Option(help="Covariance divided by n - ddof: 0 or 1.")] = 1,
    memory: Annotated[
        float, typer.Option(help="GB that scoring may use besides the features.")
    ] = 1.0,
    remove: Annotated[
        str | None,
        typer.Option(help="Instead of a gallery: retrain without these shares, e.g. 0.1,0.3."),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="With --remove, what leaves first: high, low (influence), random, distance, "
            "mahalanobis, norm, disagreement; each also with -low."
        ),
    ] = "high,low,random",
    within: Annotated[
        str, typer.Option(help="With --remove: the same share of every class, or of all.")
    ] = "class",
    network: Annotated[
        str,
        typer.Option(
            help="With --remove: logistic, or on images lenet, cnn, resnet18, vit, yours."
        ),
    ] = "logistic",
    epochs: Annotated[
        int | None, typer.Option(help="With --remove and a network; by a rule if not given.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="With --remove: repeats.")] = 5,
    jobs: Jobs = None,
    device: Device = "auto",
    folder: DataFolder = None,
    size: Size = None,
    test_share: TestShare = None,
    skip_bad: SkipBad = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for what is written; runs/influence-DATA.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write the table as CSV too.")] = False,
    gallery: Annotated[
        bool, typer.Option("--gallery/--no-gallery", help="Write the page of pictures.")
    ] = True,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Find atypical samples without a model and without training, and look at them.

    A sample's influence is what the squared norm of its class's covariance loses when it is left
    out (003 Eq. (10)), exactly. Beside it stand plainer scores, a percentile within the class, and
    a word for what a curator should look at it for. A page of pictures and a table are written.
    It does not find wrong labels well: for those look at the column disagreement (the docs say
    how much better it is).

    Example: [bold]rarefy influence digits --open[/]

    Example: [bold]rarefy influence my_photos --skip-bad --csv[/]

    Example: [bold]rarefy influence flowers.parquet --label species[/]

    Example: [bold]rarefy influence digits --remove 0.1,0.3,0.5[/]
    """
    use_data_folder(folder)
    if remove is not None:
        _remove(
            data, label, remove, by, within, network, epochs, seeds, jobs, device,
            (size, test_share, skip_bad), out, overwrite, max_seconds, as_json,
        )  # fmt: skip
        return
    samples = _opened(
        data,
        split=split,
        label=label,
        labels=labels,
        columns=None if columns is None else columns.split(","),
        names=names,
        image=image,
        size=size,
        test_share=test_share,
        skip_bad=skip_bad,
        standardize=standardize,
    )
    for note in samples.notes:
        complain(note, 0)
    target = out if out is not None else Path("runs") / f"influence-{_plain(samples.name)}"
    if target.exists() and not target.is_dir():
        raise bad_value("out", str(target), "is a file; name a folder")
    if overwrite:
        shutil.rmtree(target / UNFINISHED, ignore_errors=True)
    scored = _scored(samples, embed, neighbours, ddof, memory, device, target, max_seconds)
    written = _written(scored, target, csv, gallery)
    shutil.rmtree(target / UNFINISHED, ignore_errors=True)
    if scored.doubtful_neighbours():
        complain(LITTLE_SAID, 0)
    if as_json:
        typer.echo(json.dumps(_described(scored, written), indent=1))
    else:
        print_(_classes(scored))
        print_(_top(scored.table))
        for what, path in written.items():
            typer.echo(f"{what}: {path}")
    if open_ and "gallery" in written:
        webbrowser.open(written["gallery"].resolve().as_uri())


# -------------------------------------------------------------------------------- score and gallery


def _opened(data: str, **options: Any) -> Samples:
    from rarefy.tools.samples.opening import open_samples

    return open_samples(data, **options)


def _scored(
    samples: Samples,
    embed: str | None,
    neighbours: int,
    ddof: int,
    memory: float,
    device: str,
    target: Path,
    max_seconds: float | None,
) -> Scored:
    from rarefy.core.progress import Progress
    from rarefy.core.settings import resolve_device
    from rarefy.tools.influence.forecasting import forecast
    from rarefy.tools.influence.scoring import Scoring, score_samples
    from rarefy.tools.samples.features import embed as embedded

    settings = Scoring(ddof, neighbours, int(memory * 1e9), device)
    state = target / UNFINISHED
    if embed is not None:
        samples = embedded(
            samples,
            embed,
            device=str(resolve_device(device)),
            folder=state / "features",
            progress=True,
        )
    words = forecast(samples, settings, WORTH_SAYING)
    if words:
        typer.echo(f"forecast: {words}", err=True)
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    with Progress(f"influence of {samples.name}", 1.0) as progress:
        return score_samples(
            samples,
            settings,
            state=state / "scores",
            progress=progress.advance,
            deadline=deadline,
        )


def _written(scored: Scored, target: Path, csv: bool, gallery: bool) -> dict[str, Path]:
    """Table and page; what was unfinished has no use any more."""
    from rarefy.tools.influence.writing import write_table

    target.mkdir(parents=True, exist_ok=True)
    found = {"table": write_table(scored.table, target / "scores.parquet")}
    if csv:
        found["csv"] = write_table(scored.table, target / "scores.csv")
    if gallery:
        from rarefy.report.gallery import write_gallery

        samples = scored.samples
        write_gallery(
            target / "gallery.html",
            scored.table,
            title=f"Atypical samples of {samples.name}",
            classes=samples.classes,
            thumbnail=samples.images,
            covariance=scored.overlaps(),
            neighbours=scored.typical_neighbours,
            facts=scored.facts(),
            columns=scored.columns,
        )
        found["gallery"] = target / "gallery.html"
    return found


def _described(scored: Scored, written: dict[str, Path]) -> dict[str, Any]:
    table = scored.table
    words = table["triage"].value_counts()
    columns = ["id", "name", "label", "influence", "percentile"]
    return {
        "samples": len(table),
        "classes": len(scored.samples.classes),
        "undefined": int(table["influence"].isna().sum()),
        "triage": {word: int(count) for word, count in words.items() if word},
        "highest": _highest(table)[columns].to_dict("records"),
        "seconds": table.attrs["seconds"],
        "written": {what: str(path) for what, path in written.items()},
    }


def _highest(table: pd.DataFrame) -> pd.DataFrame:
    """Those with the largest share of their class's covariance norm: raw scores of different
    classes cannot be compared."""
    moved = table["own"] + table["shared"]
    share = moved / moved.groupby(table["label"]).transform("sum")
    return table.assign(share=share).nlargest(TOP, "share")


def _classes(scored: Scored) -> Table:
    from rich.markup import escape
    from rich.table import Table as RichTable

    table = RichTable(
        title=f"{escape(scored.samples.name)}: {len(scored.table):,} samples, "
        f"{len(scored.samples.classes)} classes",
        caption="words: what a curator should look at a sample for, with their numbers of samples",
    )
    words = [word for word in scored.words() if word]
    for head in ("class", "samples", "undefined", *words):
        table.add_column(head, justify="left" if head == "class" else "right")
    shown = scored.by_class()
    for row in shown[: 2 * TOP]:
        table.add_row(
            escape(str(row["class"])), *(f"{row[head]:,}" for head in row if head != "class")
        )
    if len(shown) > 2 * TOP:
        table.add_row(f"... {len(shown) - 2 * TOP} more", *[""] * (len(words) + 2))
    return table


def _top(table: pd.DataFrame) -> Table:
    from rich.markup import escape
    from rich.table import Table as RichTable

    found = RichTable(
        title="most atypical", caption="share: of the class's covariance norm, own and shared parts"
    )
    for head in ("sample", "class", "influence", "share", "neighbours disagree", "look for"):
        found.add_column(head, justify="left" if head in ("class", "look for") else "right")
    for row in _highest(table).itertuples():
        found.add_row(
            escape(str(row.name or row.index)),
            escape(str(row.label)),
            f"{row.influence:.4g}",
            f"{100 * row.share:.2g} %",
            "-" if row.disagreement != row.disagreement else f"{100 * row.disagreement:.0f} %",
            escape(str(row.triage)),
        )
    return found


def _plain(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in text)


# ------------------------------------------------------------------------------------------ removal


def _remove(
    data: str,
    label: str | None,
    remove: str,
    by: str,
    within: str,
    network: str,
    epochs: int | None,
    seeds: int,
    jobs: int | None,
    device: str,
    options: tuple[int | None, float | None, bool],
    out: Path | None,
    overwrite: bool,
    max_seconds: float | None,
    as_json: bool,
) -> None:
    import torch

    from rarefy.studies import get_study
    from rarefy.tools.image_data import on_device, with_options
    from rarefy.tools.influence.removal import LOGISTIC, parts_of
    from rarefy.tools.recipes import usual_recipe

    try:
        fractions = tuple(float(part) for part in remove.split(","))
    except ValueError:
        raise UsageError(f"remove={remove!r}: must be numbers, separated by commas") from None
    data = with_options(data, *options)
    parts = parts_of(data, label or "")
    chosen: dict[str, Any] = {"epochs": 1, "subsample": 0.9}
    if network != LOGISTIC:
        if not parts.is_images:
            raise bad_value("network", network, f"needs images; for other data use {LOGISTIC}")
        usual = usual_recipe(on_device(data, torch.device("cpu")), network)
        chosen = {name: usual[name] for name in REMOVAL_RECIPE} | {"subsample": 1.0}
        if epochs is not None:
            chosen["epochs"] = epochs
    study = get_study("influence-removal").at(
        "quick",
        data=data,
        label=label or "",
        network=network,
        by=tuple(word.strip() for word in by.split(",")),
        within=(within,),
        fraction=tuple(dict.fromkeys((0.0, *fractions))),
        seeds=seeds,
        **chosen,
    )
    store = (
        out if out is not None else Path("runs") / f"removal-{_plain(parts.train.name)}-{network}"
    )
    execution = run_study(study, "quick", store, device, "float32", overwrite, max_seconds, jobs)
    if as_json:
        described: dict[str, Any] = {"store": str(execution.path), "finished": execution.finished}
        for table in study.tables(execution.dataset):
            described[table.name] = [
                dict(zip(table.columns, row, strict=True)) for row in table.rows
            ]
        typer.echo(json.dumps(described, indent=1, default=str))
    elif execution.cells_done:
        for table in study.tables(execution.dataset):
            print_(_as_rich(table))
        typer.echo(f"store: {execution.path} (rarefy report {execution.path} draws it)")
    if not execution.finished:
        complain(execution.note, 0)


REMOVAL_RECIPE = ("epochs", "batch", "learning_rate", "weight_decay", "shift", "flip")


def _as_rich(table: Any) -> Table:
    from rich.markup import escape
    from rich.table import Table as RichTable

    found = RichTable(title=table.title, caption=table.caption)
    for head in table.columns:
        found.add_column(escape(str(head)))
    for row in table.rows:
        found.add_row(*(escape(str(cell)) for cell in row))
    return found
