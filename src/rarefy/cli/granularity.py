"""The verb ``granularity``: how fine the labels of pre-training should be, on one's own images."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarefy.cli.class_tables import print_judged
from rarefy.cli.config import configured, keep_options
from rarefy.cli.folding import FILES, LABELS, TRAINING
from rarefy.cli.frame import (
    complain,
    numbers,
    print_,
    typed_again,
    use_data_folder,
)
from rarefy.cli.options import (
    AsJson,
    Compile,
    DataFolder,
    Device,
    Jobs,
    MaxSeconds,
    Overwrite,
    Precision,
    Size,
    SkipBad,
    TestShare,
    Threads,
)
from rarefy.core.errors import OutOfTime, bad_value
from rarefy.core.writing import check_output, check_place

if TYPE_CHECKING:
    from rarefy.tools.granularity.api import GranularityRun
    from rarefy.tools.granularity.images import ImageGranularity

AUTO = "By the set if not given."


@configured
def granularity(
    data: Annotated[
        str,
        typer.Argument(help="digits, mnist, cifar10, cifar100, or a folder of class folders."),
    ],
    target: Annotated[
        str | None, typer.Option(help="Level asked for; the coarsest if not given.")
    ] = None,
    hierarchy: Annotated[
        Path | None,
        typer.Option(help="Parents of the classes: CSV or JSON; what the set has if not given."),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            help="Levels to pre-train on, a,b; all finer than the target if not given.",
            rich_help_panel=LABELS,
        ),
    ] = None,
    made: Annotated[
        str,
        typer.Option(
            help="Labels made beside them: kmeans-within:K (K clusters in each target class), "
            "random:K and others (docs/grammar.md)."
        ),
    ] = "kmeans-within:2,random",
    features: Annotated[
        str,
        typer.Option(
            help="What is clustered: target (of a network trained on it), pixels, an embedding "
            "(.npy, a row per training image) or a backbone of rarefy pretrain (.pt).",
            rich_help_panel=LABELS,
        ),
    ] = "target",
    network: Annotated[
        str,
        typer.Option(
            help="lenet, cnn, resnet9, resnet18, vit, timm:NAME, torchvision:NAME, or yours as "
            "module:callable."
        ),
    ] = "cnn",
    epochs: Annotated[int | None, typer.Option(help=f"Of pre-training. {AUTO}")] = None,
    seeds: Annotated[int, typer.Option(help="Repeats; fewer than 5 decide nothing.")] = 5,
    checkpoints: Annotated[
        str,
        typer.Option(
            help="Shares of the pre-training to fine-tune after, e.g. 0.5,0.75,1.",
            rich_help_panel=TRAINING,
        ),
    ] = "1",
    batch: Annotated[
        int | None, typer.Option(help=f"Images per update. {AUTO}", rich_help_panel=TRAINING)
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--lr", help=f"Largest rate of pre-training. {AUTO}", rich_help_panel=TRAINING
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Training images used; 0: all.", rich_help_panel=TRAINING)
    ] = 0,
    precision: Precision = "auto",
    compile_: Compile = False,
    jobs: Jobs = None,
    threads: Threads = None,
    device: Device = "auto",
    folder: DataFolder = None,
    size: Size = None,
    test_share: TestShare = None,
    skip_bad: SkipBad = False,
    out: Annotated[
        Path | None, typer.Option(help="Store; runs/granularity-DATA... if not given.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="The page; beside the store if not given.",
            rich_help_panel=FILES,
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Say how fine labels should be, on your own images.

    Networks are pre-trained on each level of the labels and on made ones, then
    fine-tuned on the target and compared with re-training on it. The last line
    says how fine to label. A page with the curve is written. Stopped or killed,
    the same command goes on; more --seeds extend it.

    Example: [bold]rarefy granularity digits[/]
    Example: [bold]rarefy granularity my_photos --hierarchy parents.csv --open[/]
    Example: [bold]rarefy granularity cifar100 --target coarse --made kmeans-within:5[/]
    """
    use_data_folder(folder)
    from rarefy.tools.granularity.api import granularity as compare

    def before(experiment: ImageGranularity, store: Path) -> None:
        from rarefy.tools.granularity.forecasting import forecast

        if page is not None and page.suffix.lower() not in (".html", ".htm"):
            raise bad_value("page", page, "must end in .html")
        check_place(store)
        check_output(_page(page, store), "granularity", overwrite=overwrite, option="page")
        words = forecast(experiment, store, device, jobs, overwrite)
        if words:
            typer.echo(words, err=True)

    found = compare(
        data,
        target,
        hierarchy,
        None if levels is None else _words(levels),
        made=_words(made),
        features=features,
        network=network,
        epochs=epochs,
        seeds=seeds,
        checkpoints=numbers("checkpoints", checkpoints),
        batch=batch,
        learning_rate=learning_rate,
        samples=samples,
        precision=precision,
        compiled=compile_,
        size=size,
        test_share=test_share,
        skip_bad=skip_bad,
        device=device,
        jobs=jobs,
        threads=threads,
        out=out,
        overwrite=overwrite,
        max_seconds=max_seconds,
        progress=True,
        go_on=typed_again(),
        before=before,
    )
    keep_options(found.path)
    if as_json:
        typer.echo(json.dumps(found.described(), indent=1))
    if found.cells_done:
        written = _write_page(found, _page(page, Path(str(found.path))), overwrite)
        if not as_json:
            print_(found.table())
            _print_judged(found)
            for warning in found.advice.warnings:
                typer.echo(f"warning: {warning}")
            typer.echo(f"store: {found.path}; page: {written}")
            typer.echo(f"{found.advice.made}\n{found.advice.sentence}")
        if open_ and not webbrowser.open(written.absolute().as_uri()):
            complain("there is no browser here to open it with", 0)
    if not found.finished:
        raise OutOfTime(found.note)


def _print_judged(found: GranularityRun) -> None:
    """The target classes after the advised labels, or else the best, beside re-training."""
    from rarefy.tools.granularity.sets import TARGET

    name = found.shown
    if name in found.reports:
        beside = {"re-trained": found.reports[TARGET]} if TARGET in found.reports else {}
        print_judged(found.reports[name], name, {} if name == TARGET else beside)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _page(page: Path | None, store: Path) -> Path:
    return page if page is not None else store.with_name(f"{store.name}.html")


def _write_page(found: GranularityRun, path: Path, overwrite: bool) -> Path:
    from rarefy.report.granularity import write_granularity
    from rarefy.tools.granularity.rows import KINDS
    from rarefy.tools.granularity.sets import TARGET

    facts = [("store", found.path), *found.experiment.parameters().items()]
    shown = dict.fromkeys((found.shown, TARGET))
    classes = {
        KINDS.get(name, name): found.reports[name].table for name in shown if name in found.reports
    }
    advice = found.advice.described()
    return write_granularity(path, advice, found.picture(), facts, overwrite, classes)
