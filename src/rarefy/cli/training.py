"""The verb ``train``: networks on images, dense and pruned beside each other."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from rarefy.cli.frame import (
    app,
    exit_on_error,
    numbers,
    print_,
    spell_saved,
    typed_again,
    use_data_folder,
)
from rarefy.cli.options import (
    AsJson,
    DataFolder,
    Device,
    Jobs,
    MaxSeconds,
    Overwrite,
    Size,
    SkipBad,
    TestShare,
    Threads,
)
from rarefy.core.errors import OutOfTime

AUTO = "By the set and the device if not given."


@app.command()
@exit_on_error
def train(
    data: Annotated[
        str,
        typer.Argument(help="digits, mnist, cifar10, cifar100, or a folder of class folders."),
    ],
    keep: Annotated[
        str,
        typer.Option(
            help="Shares of the weights to keep, e.g. 0.3 or 0.5,0.3,0.1; auto: chosen by a short "
            "race on held-out training images."
        ),
    ] = "0.3",
    network: Annotated[
        str | None,
        typer.Option(
            help="lenet, cnn, cnn-small, resnet18, vit; timm:NAME or torchvision:NAME where these "
            f"are installed (no weights are downloaded); or yours as module:callable. {AUTO}"
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help=f"Passes over the images. {AUTO}")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Repeats, each dense and pruned from one start; fewer than 5 decide "
            "nothing. 5 if not given, 3 where that takes hours."
        ),
    ] = None,
    update: Annotated[
        str, typer.Option(help="Pruned weights: project (zero, trained on), dense or masked.")
    ] = "project",
    granularity: Annotated[
        str, typer.Option(help="Of what the share is kept: filter, layer, global or neuron.")
    ] = "filter",
    every: Annotated[int, typer.Option(help="Updates between two choices of masks.")] = 1,
    noise: Annotated[
        str,
        typer.Option(help="Std of Gaussian noise in training (pixels in [0, 1]); a list runs all."),
    ] = "0",
    test_noise: Annotated[
        str, typer.Option(help="Stds of noise in the test; every network is asked at all.")
    ] = "0",
    noise_once: Annotated[
        bool, typer.Option("--noise-once", help="Draw training noise once per image, not anew.")
    ] = False,
    batch: Annotated[int | None, typer.Option(help=f"Images per update. {AUTO}")] = None,
    optimizer: Annotated[str | None, typer.Option(help=f"sgd or adamw. {AUTO}")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--lr", help=f"Largest rate. {AUTO}")
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help=AUTO)] = None,
    schedule: Annotated[str, typer.Option(help="cosine, step or constant.")] = "cosine",
    shift: Annotated[
        int | None, typer.Option(help=f"Move images by up to so many pixels. {AUTO}")
    ] = None,
    flip: Annotated[
        bool | None, typer.Option("--flip/--no-flip", help=f"Mirror images half the time. {AUTO}")
    ] = None,
    samples: Annotated[int, typer.Option(help="Training images used; 0: all.")] = 0,
    precision: Annotated[str, typer.Option(help="auto (bf16 on a GPU), bf16 or float32.")] = "auto",
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile the network; pays for large ones on a GPU.")
    ] = False,
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
    save: Annotated[
        Path | None, typer.Option(help="Write the trained networks into this folder.")
    ] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Train a network on images, dense and pruned while it trains, and compare the two.

    Every seed trains the dense network and one for each share of --keep, from the same weights on
    the same batches, so that differences can be told from luck. Judged per class, beside always
    answering the largest class and a logistic regression on pixels; the last line says what to use.
    What is finished is kept: stopped or killed, the same command goes on where it was; more --seeds
    extend it. [bold]rarefy report[/] makes a page of the store.

    Example: [bold]rarefy train digits --keep 0.3[/]

    Example: [bold]rarefy train my_photos --keep auto[/]

    Example: [bold]rarefy train cifar10 --keep 0.5,0.3,0.1 --network resnet18 --compile[/]

    Example: [bold]rarefy train my_photos --keep 0.5 --network my_models:small_net --save nets[/]
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
