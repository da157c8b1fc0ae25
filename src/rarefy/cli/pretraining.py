"""The verb ``pretrain``: features of images without labels, several methods beside each other."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarefy.cli.class_tables import print_chosen
from rarefy.cli.completing import methods
from rarefy.cli.config import configured, keep_options
from rarefy.cli.folding import FILES, JUDGING, TAIL, TRAINING
from rarefy.cli.frame import (
    numbers,
    print_,
    spell_saved,
    typed_again,
    use_data_folder,
)
from rarefy.cli.longtail_tables import differences, quality_table
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
from rarefy.core.errors import OutOfTime, RunError

if TYPE_CHECKING:
    from rarefy.tools.longtail.pretrain_run import PretrainImages, PretrainRun

AUTO = "By the images if not given."


@configured
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
        typer.Option(help="Make it long-tailed: largest class over smallest, as 20 or 10,100."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="simclr, pruned:KEEP, branches:KEEP, sdclr, pixels; a list compares them; auto: "
            "chosen for you (docs/grammar.md).",
            autocompletion=methods,
        ),
    ] = "simclr,branches:0.1,pixels",
    network: Annotated[
        str | None,
        typer.Option(
            help="lenet, cnn, resnet9, resnet18, vit, timm:NAME, torchvision:NAME, or yours as "
            f"module:callable. {AUTO}"
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help=f"Passes. {AUTO}")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Repeats; fewer than 5 decide nothing. 6 with --rho, 1 with --unlabelled, else 5."
        ),
    ] = None,
    control: Annotated[
        bool,
        typer.Option(
            "--control/--no-control",
            help="With --rho: also train on the balanced set of equal size (head classes may just "
            "be easier).",
            rich_help_panel=TAIL,
        ),
    ] = True,
    split: Annotated[
        str | None,
        typer.Option(
            help="Shape of the tail: exponential (if not given), step, pareto, with --rho; or a "
            "split file that somebody saved (.json), or a list as of ImageNet-LT (.txt).",
            rich_help_panel=TAIL,
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            help="Images of the largest class: full (as many as the smallest class of the set "
            "has, if not given), sdclr (a tenth is left for validation), or a number.",
            rich_help_panel=TAIL,
        ),
    ] = None,
    save_split: Annotated[
        Path | None,
        typer.Option(
            help="Write the images of the first seed as a split file (.json).", rich_help_panel=TAIL
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help=f"Images per update. {AUTO}", rich_help_panel=TRAINING)
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--lr", help=f"Largest rate. {AUTO}", rich_help_panel=TRAINING)
    ] = None,
    warm_up: Annotated[
        float | None,
        typer.Option(
            help=f"Share of the training over which the rate rises. {AUTO}",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    weight_decay: Annotated[
        float, typer.Option(help="Of matrices and kernels.", rich_help_panel=TRAINING)
    ] = 1e-4,
    temperature: Annotated[
        float, typer.Option(help="tau of the contrastive loss.", rich_help_panel=TRAINING)
    ] = 0.2,
    crop: Annotated[
        float,
        typer.Option(
            help="Least share of an image that a view shows; 0: 0.1 of colour images.",
            rich_help_panel=TRAINING,
        ),
    ] = 0.0,
    protocols: Annotated[
        str,
        typer.Option(
            help="How features are judged: linear, long-tail (labels of the trained images "
            "alone), few, knn.",
            rich_help_panel=JUDGING,
        ),
    ] = "linear,knn",
    shots: Annotated[
        int, typer.Option(help="Labels per class of the protocol few.", rich_help_panel=JUDGING)
    ] = 10,
    stop: Annotated[
        bool,
        typer.Option(
            "--stop/--no-stop",
            help="End a training where held-out images show for certain that it was long enough.",
            rich_help_panel=TRAINING,
        ),
    ] = True,
    precision: Precision = "auto",
    compile_: Compile = False,
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
            help="Of a folder: all images below it, no classes; nothing is judged.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Store; runs/pretrain-DATA if not given.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Folder for the trained backbones.")] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="Write a row of features per image into this file (.parquet, .csv, .npz), of the "
            "method that the last line names, or else of the first.",
            rich_help_panel=FILES,
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Write that network as a program (.pt2): PyTorch loads it by itself.",
            rich_help_panel=FILES,
        ),
    ] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Learn features of images without labels, and judge them.

    Contrastive learning (SimCLR) beside methods that prune while they train, all
    from the same weights and views. The first line says how long it takes, the
    last one which method to use. Stopped or killed, the same command goes on; it
    runs under torchrun too. More: docs/longtail.md.

    Example: [bold]rarefy pretrain digits --rho 20[/]
    Example: [bold]rarefy pretrain my_photos --method auto --save nets[/]
    Example: [bold]rarefy pretrain my_photos --unlabelled --features rows.parquet[/]
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
    keep_options(found.path)
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
