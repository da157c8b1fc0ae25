"""The verb ``pretrain``: features of images without labels, several methods beside each other."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarefy.cli.class_tables import print_chosen
from rarefy.cli.completing import methods
from rarefy.cli.frame import (
    app,
    exit_on_error,
    numbers,
    print_,
    spell_saved,
    typed_again,
    use_data_folder,
)
from rarefy.cli.longtail_tables import differences, quality_table
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
from rarefy.core.errors import OutOfTime, RunError

if TYPE_CHECKING:
    from rarefy.tools.longtail.pretrain_run import PretrainImages, PretrainRun

AUTO = "By the images and the device if not given."


@app.command()
@exit_on_error
def pretrain(
    data: Annotated[
        str,
        typer.Argument(
            help="digits, mnist, cifar10, cifar100, a folder of class folders, or with "
            "--unlabelled any folder of images."
        ),
    ],
    rho: Annotated[
        str | None,
        typer.Option(
            help="Make it long-tailed: images of the largest class over those of the smallest, "
            "e.g. 20 or 10,100. The set as it is if not given."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="simclr, pruned:KEEP (masked forward, all updated), branches:KEEP (dense and "
            "masked; branches:1 has no masks), sdclr; pixels, untrained. A list trains all; the "
            "first that trains without masks is what others are compared with. auto: simclr or "
            "branches:0.1, by held-out images after one whole training each. Words after a + "
            "change a method: docs/longtail.md.",
            autocompletion=methods,
        ),
    ] = "simclr,branches:0.1,pixels",
    network: Annotated[
        str | None,
        typer.Option(
            help="lenet, cnn, resnet18, vit; timm:NAME or torchvision:NAME where these are "
            f"installed (no weights are downloaded); or yours as module:callable. {AUTO}"
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help=f"Passes over the images. {AUTO}")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Repeats, with --rho each with another order of the classes and other images (6 "
            "if not given), else with other weights and views alone (5, or 1 with --unlabelled). "
            "Fewer than 5 decide nothing."
        ),
    ] = None,
    control: Annotated[
        bool,
        typer.Option(
            "--control/--no-control",
            help="Also train on the balanced set of equal size, with --rho.",
        ),
    ] = True,
    split: Annotated[
        str | None,
        typer.Option(
            help="Shape of the tail: exponential (if not given), step, pareto, with --rho; or a "
            "split file that somebody saved (.json), or a list as of ImageNet-LT (.txt)."
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            help="Images of the largest class: full (as many as the smallest class of the set "
            "has, if not given), sdclr (a tenth is left for validation), or a number."
        ),
    ] = None,
    save_split: Annotated[
        Path | None,
        typer.Option(help="Write the images of the first seed as a split file (.json)."),
    ] = None,
    batch: Annotated[int | None, typer.Option(help=f"Images per update. {AUTO}")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--lr", help=f"Largest rate. {AUTO}")
    ] = None,
    warm_up: Annotated[
        float | None, typer.Option(help=f"Share of the training over which it rises. {AUTO}")
    ] = None,
    weight_decay: Annotated[float, typer.Option(help="Of matrices and kernels.")] = 1e-4,
    temperature: Annotated[float, typer.Option(help="tau of the contrastive loss.")] = 0.2,
    crop: Annotated[
        float,
        typer.Option(help="Least share of an image that a view shows; 0: 0.1 of colour images."),
    ] = 0.0,
    protocols: Annotated[
        str,
        typer.Option(
            help="How features are judged: linear, long-tail (labels of the trained images "
            "alone), few, knn."
        ),
    ] = "linear,knn",
    shots: Annotated[int, typer.Option(help="Labels per class of the protocol few.")] = 10,
    stop: Annotated[
        bool,
        typer.Option(
            "--stop/--no-stop",
            help="End a training where held-out images show for certain that it was long enough.",
        ),
    ] = True,
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
    unlabelled: Annotated[
        bool,
        typer.Option(
            "--unlabelled",
            help="Of a folder: all images below it, no classes; nothing is judged, the networks "
            "are saved.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Store; runs/pretrain-DATA if not given.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the trained backbones into this folder.")
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="Write a row of features per image into this file (.parquet, .csv, .npz), of the "
            "method that the last line names, or else of the first."
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Write that network as a program (.pt2): PyTorch loads it by itself."),
    ] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Learn features of images without labels, and say how good they are for head and tail.

    Contrastive learning (SimCLR) beside methods that prune while they train. Every seed has one
    order of the classes, and all methods start from the same weights and see the same views, so
    that differences can be told from luck. With --rho the set is made long-tailed, and its
    balanced control of equal size is trained on too: head classes may just be easier. Of each
    training the network is kept and judged that was best on the way, by the nearest neighbours of
    held-out training images (never of test images), and a training past its best is stopped. A line
    says first how long it takes, the last one which method to use or how many seeds more would
    tell, beside raw pixels and always answering the largest class; rare classes come first. What is
    finished is kept: stopped or killed, the same command goes on. [bold]rarefy probe[/] judges
    saved backbones again, [bold]rarefy report[/] makes a page of the store. Under torchrun one
    method and seed is trained by all processes together, and its control (unfinished has exit code
    0 there: torchrun takes every other for a crash).

    Example: [bold]rarefy pretrain digits --rho 20[/]

    Example: [bold]rarefy pretrain cifar10 --rho 100 --method simclr,branches:0.1 --compile
    --save nets[/]

    Example: [bold]rarefy pretrain my_photos --method auto[/]

    Example: [bold]rarefy pretrain my_photos --unlabelled --size 64 --features photos.parquet[/]
    """
    use_data_folder(folder)
    from rarefy.tools.longtail.pretrain_images import pretrain_images

    def before(experiment: PretrainImages, store: Path) -> None:
        import torch

        from rarefy.tools.forecasting import forecast
        from rarefy.tools.image_data import on_device

        trained = experiment.trained_share()
        if trained and (words := forecast(experiment, store, device, jobs, overwrite, trained)):
            channels, size, _ = on_device(experiment.data, torch.device("cpu")).shape
            images = f"images of {channels} x {size} x {size}"
            how = f"{images}, {experiment.network}, {experiment.epochs} epochs"
            typer.echo(f"{how}: {words}", err=True)

    began = time.time()
    found = pretrain_images(
        data,
        method,
        network,
        rho=None if rho is None else numbers("rho", rho),
        split=split,
        head=head,
        control=control,
        save_split=save_split,
        epochs=epochs,
        seeds=seeds,
        batch=batch,
        learning_rate=learning_rate,
        warm_up=warm_up,
        weight_decay=weight_decay,
        temperature=temperature,
        crop=crop,
        protocols=[word.strip() for word in protocols.split(",") if word.strip()],
        shots=shots,
        stop=stop,
        precision=precision,
        compiled=compile_,
        size=size,
        test_share=test_share,
        skip_bad=skip_bad,
        unlabelled=unlabelled,
        device=device,
        jobs=jobs,
        threads=threads,
        out=out,
        save=save,
        features=features,
        export=export,
        overwrite=overwrite,
        max_seconds=max_seconds,
        progress=True,
        go_on=typed_again(),
        before=before,
    )
    if found is None:  # by several processes: the first has printed it
        return
    if as_json:
        typer.echo(json.dumps(found.described(), indent=1))
    elif found.cells_done:
        if not unlabelled:
            _print_judged(found)
        why = "all stopped, not finite" if found.all_stopped else ""
        why = why if found.trained else "nothing was trained"
        typer.echo(f"store: {found.path}" + spell_saved(found.networks, began, why))
        for what, path in found.written.items():
            typer.echo(f"{what}: {path}")
        if found.choice:
            typer.echo(found.choice)
        if unlabelled:
            typer.echo(_without_labels(found))
        elif found.decision is not None:
            typer.echo(found.decision.sentence)
    if not found.finished:
        raise OutOfTime(found.note)
    if found.all_stopped:
        raise RunError("no training came to its end: the loss is no number (see above)")


def _without_labels(found: PretrainRun) -> str:
    """Nothing can be chosen by effective ranks, but a collapse shows in them."""
    seen = found.dataset["watched_rank"].mean(["seed", "images", "rho", "algorithm"]).values
    ranks = (
        f"{seen[0]:.1f} at first, {seen[-1]:.1f} at the end" if len(seen) > 1 else f"{seen[0]:.1f}"
    )
    return (
        f"no labels: the last network is kept (effective rank of features {ranks}), nothing is "
        "judged; rarefy probe does, with labelled images"
    )


def _print_judged(found: PretrainRun) -> None:
    """All methods; then what is chosen, or else the best, per class (of the longest tail)."""
    print_(quality_table(found))
    for line in differences(found.experiment, found.dataset):
        typer.echo(line)
    print_chosen(found.judged, found.decision.choice if found.decision else None)
