"""The verb ``train``: networks on images, dense and pruned beside each other."""

from __future__ import annotations

import json
import os
import time
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
    Threads,
    app,
    exit_on_error,
    print_,
    run_study,
    spell_saved,
    use_data_folder,
)
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.core.text import folder_name

if TYPE_CHECKING:
    from rarefy.core.contracts import Study
    from rarefy.core.tables import Table
    from rarefy.sweep.runner import Execution

AUTO = "By the kind and size of the set if not given."


@app.command()
@exit_on_error
def train(
    data: Annotated[
        str,
        typer.Argument(help="digits, mnist, cifar10, cifar100, or a folder of class folders."),
    ],
    keep: Annotated[
        str, typer.Option(help="Shares of the weights to keep, e.g. 0.3 or 0.5,0.3,0.1.")
    ] = "0.3",
    network: Annotated[
        str, typer.Option(help="lenet, cnn, resnet18, vit, or yours as module:callable.")
    ] = "cnn",
    epochs: Annotated[int | None, typer.Option(help=f"Passes over the images. {AUTO}")] = None,
    seeds: Annotated[int, typer.Option(help="Repeats, each dense and pruned from one start.")] = 3,
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
    the same batches, so that differences can be told from luck. What is finished is kept: stopped
    or killed, the same command goes on where it was; more --seeds extend it.
    [bold]rarefy report[/] makes a page of the store.

    Example: [bold]rarefy train digits --keep 0.3[/]

    Example: [bold]rarefy train cifar10 --keep 0.5,0.3,0.1 --network resnet18 --compile[/]

    Example: [bold]rarefy train my_photos --keep 0.5 --network my_models:small_net --save nets[/]
    """
    use_data_folder(folder)
    import torch

    from rarefy.studies import get_study
    from rarefy.tools.image_data import on_device, with_options
    from rarefy.tools.recipes import usual_recipe

    chosen = {
        "epochs": epochs,
        "batch": batch,
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "shift": shift,
        "flip": flip,
    }
    kept = _numbers("keep", keep)
    if Path(data).is_dir():
        data = os.path.normpath(data)  # one store, however the folder was typed
    usual_name = folder_name(
        "train", Path(data).name, network, source=data, choices=(size, test_share, skip_bad)
    )
    data = with_options(data, size, test_share, skip_bad)
    found = on_device(data, torch.device("cpu"))
    usual = usual_recipe(found, network, samples)
    study = get_study("train-images").at(
        "quick",
        data=data,
        network=network,
        keep=tuple(dict.fromkeys((1.0, *kept))),
        noise=_numbers("noise", noise),
        test_noise=_numbers("test_noise", test_noise),
        drawn=("once" if noise_once else "fresh",),
        update=(update,),
        granularity=granularity,
        every=every,
        schedule=schedule,
        samples=samples,
        seeds=seeds,
        precision=precision,
        compile=compile_,
        **{name: usual[name] if value is None else value for name, value in chosen.items()},
    )
    _check_network(network, found)
    store = out if out is not None else Path("runs") / usual_name
    began = time.time()
    execution = run_study(
        study, "quick", store, device, "float32", overwrite, max_seconds, jobs, save, threads
    )
    if as_json:
        typer.echo(json.dumps(_describe(execution), indent=1))
    elif execution.cells_done:
        print_(_table(study, execution))
        typer.echo(f"store: {execution.path}" + spell_saved(save, began))
    if not execution.finished:
        raise OutOfTime(execution.note)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{name}={text!r}: must be numbers, separated by commas") from None


def _check_network(network: str, data: Any) -> None:
    """Before anything is written: a model that cannot take these images never will."""
    from rarefy.nets.builder import build

    channels, size, _ = data.shape
    build(network, channels=channels, size=size, classes=len(data.classes))


def _number(value: float | None, unit: float = 1, form: str = ".2f", mark: str = "") -> str:
    return "-" if value is None else format(unit * value, form) + mark


def _describe(execution: Execution) -> dict[str, Any]:
    from rarefy.tools.comparison import comparison

    return {
        "store": str(execution.path),
        "cells": execution.cells,
        "cells_done": execution.cells_done,
        "finished": execution.finished,
        "rows": list(comparison(execution.dataset)),
    }


def _table(study: Study, execution: Execution) -> Table:
    from rarefy.core.tables import Table
    from rarefy.tools.comparison import comparison, in_words

    told = study.parameters()
    rows = list(comparison(execution.dataset))
    noisy = any(row["noise"] or row["test_noise"] for row in rows)
    table = Table(
        title=f"{told['data']}, {told['network']}, {told['epochs']} epochs, "
        f"pruned by {told['granularity']} ({told['update'][0]}, every {told['every']})",
        caption="means over n seeds; train: over the last epoch; [ ]: 95 % interval of the "
        "difference, seed by seed",
    )
    for head in (("noise", "test noise") if noisy else ()) + (
        *("keep", "weights left", "train %", "test %", "from dense", "n", ""),
    ):
        table.add_column(head, justify="left" if head == "" else "right")
    for row in rows:
        ends = row["difference_interval"]
        gain = "" if row["difference"] is None else f"{row['difference']:+.2f}"
        gain += f" [{ends[0]:+.2f}, {ends[1]:+.2f}]" if ends else ""
        table.add_row(
            *((f"{row['noise']:g}", f"{row['test_noise']:g}") if noisy else ()),
            "dense" if row["keep"] == 1 else f"{row['keep']:g}",
            _number(row["weights_kept"], 100, ".1f", " %"),
            _number(row["train_accuracy"]),
            _number(row["test_accuracy"]),
            gain,
            str(row["n"]),
            in_words(row),
        )
    return table
