"""The verb ``train``: networks on images, dense and pruned beside each other."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from rarefy.cli.config import configured, keep_options
from rarefy.cli.folding import NOISE, PRUNING, TRAINING
from rarefy.cli.frame import (
    numbers,
    print_,
    spell_saved,
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
from rarefy.core.errors import OutOfTime

AUTO = "By the set if not given."


@configured
def train(
    data: Annotated[
        str,
        typer.Argument(help="digits, mnist, cifar10, cifar100, or a folder of class folders."),
    ],
    keep: Annotated[
        str,
        typer.Option(
            help="Share of the weights to keep; several as 0.5,0.3,0.1; auto: chosen for you on "
            "held-out images."
        ),
    ] = "0.3",
    network: Annotated[
        str | None,
        typer.Option(
            help="lenet, cnn, cnn-small, resnet9, resnet18, vit, timm:NAME, torchvision:NAME, or "
            f"yours as module:callable. {AUTO}"
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help=f"Passes. {AUTO}")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Repeats; fewer than 5 decide nothing. 5 if not given, 3 where that takes hours."
        ),
    ] = None,
    update: Annotated[
        str,
        typer.Option(
            help="What happens to pruned weights: project (zero, and trained on), dense or masked. "
            "Words behind a + change it: docs/grammar.md.",
            rich_help_panel=PRUNING,
        ),
    ] = "project",
    granularity: Annotated[
        str,
        typer.Option(
            help="Of what the share is kept: filter, layer, global or neuron.",
            rich_help_panel=PRUNING,
        ),
    ] = "filter",
    every: Annotated[
        int,
        typer.Option(help="Updates between two choices of masks.", rich_help_panel=PRUNING),
    ] = 1,
    noise: Annotated[
        str,
        typer.Option(
            help="Std of Gaussian noise in training (pixels in [0, 1]); a list runs all.",
            rich_help_panel=NOISE,
        ),
    ] = "0",
    test_noise: Annotated[
        str,
        typer.Option(
            help="Stds of noise in the test; every network is asked at all.", rich_help_panel=NOISE
        ),
    ] = "0",
    noise_once: Annotated[
        bool,
        typer.Option(
            "--noise-once",
            help="Draw training noise once per image, not anew.",
            rich_help_panel=NOISE,
        ),
    ] = False,
    batch: Annotated[
        int | None, typer.Option(help=f"Images per update. {AUTO}", rich_help_panel=TRAINING)
    ] = None,
    optimizer: Annotated[
        str | None, typer.Option(help=f"sgd or adamw. {AUTO}", rich_help_panel=TRAINING)
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--lr", help=f"Largest rate. {AUTO}", rich_help_panel=TRAINING)
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help=AUTO, rich_help_panel=TRAINING)] = None,
    schedule: Annotated[
        str, typer.Option(help="cosine, step or constant.", rich_help_panel=TRAINING)
    ] = "cosine",
    shift: Annotated[
        int | None,
        typer.Option(help=f"Move images by up to so many pixels. {AUTO}", rich_help_panel=TRAINING),
    ] = None,
    flip: Annotated[
        bool | None,
        typer.Option(
            "--flip/--no-flip",
            help=f"Mirror images half the time. {AUTO}",
            rich_help_panel=TRAINING,
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
        Path | None, typer.Option(help="Store; runs/train-DATA-NETWORK if not given.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Folder for the trained networks.")] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Train a network on images, dense and pruned; compare the two.

    Both start from the same weights, so that differences can be told from luck.
    They are judged per class; the last line says which to use. Stopped or killed,
    the same command goes on; more --seeds extend it.

    Example: [bold]rarefy train digits --keep 0.3[/]
    Example: [bold]rarefy train my_photos --keep auto[/]
    Example: [bold]rarefy train my_photos --keep 0.5,0.3 --network resnet18 --save nets[/]
    """
    use_data_folder(folder)
    from rarefy.tools.train_images import train as train_images

    began = time.time()
    found = train_images(
        data,
        keep if keep == "auto" else numbers("keep", keep),
        network,
        epochs=epochs,
        seeds=seeds,
        update=update,
        granularity=granularity,
        every=every,
        noise=numbers("noise", noise),
        test_noise=numbers("test_noise", test_noise),
        noise_once=noise_once,
        batch=batch,
        optimizer=optimizer,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        schedule=schedule,
        shift=shift,
        flip=flip,
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
        save=save,
        overwrite=overwrite,
        max_seconds=max_seconds,
        progress=True,
        go_on=typed_again(),
    )
    keep_options(found.path)
    if as_json:
        typer.echo(json.dumps(found.described(), indent=1))
    elif found.cells_done:
        for table in found.tables():
            print_(table)
        for words in found.warnings:
            typer.echo(f"warning: {words}")
        typer.echo(f"store: {found.path}" + spell_saved(save, began))
        typer.echo(found.decision.sentence)
    if not found.finished:
        raise OutOfTime(found.note)
