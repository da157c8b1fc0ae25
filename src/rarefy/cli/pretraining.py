"""The verb ``pretrain``: features of images without labels, several methods beside each other."""

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
from rarefy.cli.longtail_tables import differences, quality_table
from rarefy.cli.pretraining_checks import check_before
from rarefy.core.errors import OutOfTime, RunError, UsageError, bad_value
from rarefy.core.text import folder_name

if TYPE_CHECKING:
    from rarefy.core.contracts import Study

AUTO = "By the number and size of the images if not given."
AS_IS = "as-is"


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
            "first that trains without masks is what others are compared with."
        ),
    ] = "simclr,branches:0.1,pixels",
    network: Annotated[
        str | None,
        typer.Option(help=f"lenet, cnn, resnet18, vit, or yours as module:callable. {AUTO}"),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help=f"Passes over the images. {AUTO}")] = None,
    seeds: Annotated[
        int,
        typer.Option(
            help="Repeats, with --rho each with another order of the classes and other images, "
            "else with other weights and views alone."
        ),
    ] = 4,
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
            "--unlabelled", help="Of a folder: all images below it, no classes; nothing is judged."
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Store; runs/pretrain-DATA if not given.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the trained backbones into this folder.")
    ] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Learn features of images without labels, and say how good they are for head and tail.

    Contrastive learning (SimCLR) beside methods that prune while they train. Every seed has one
    order of the classes, and all methods start from the same weights and see the same views, so
    that differences can be told from luck. With --rho the set is made long-tailed, and its
    balanced control of equal size is trained on too: head classes may just be easier. A training
    whose features were certainly better on the way than at its end is named. What is finished is
    kept: stopped or killed, the same command goes on. [bold]rarefy probe[/] judges
    saved backbones again, [bold]rarefy report[/] makes a page of the store. Under torchrun one
    method and seed is trained by all processes together (unfinished has exit code 0 there: torchrun
    takes every other for a crash).

    Example: [bold]rarefy pretrain digits --rho 20[/]

    Example: [bold]rarefy pretrain cifar10 --rho 100 --method simclr,branches:0.1 --compile
    --save nets[/]

    Example: [bold]rarefy pretrain my_photos --unlabelled --size 64 --method simclr --save nets[/]
    """
    use_data_folder(folder)
    from rarefy.sweep.runner import network_folder
    from rarefy.tools.image_data import with_options
    from rarefy.tools.longtail.sets import is_split_file
    from rarefy.train.simclr.method import parse_methods

    methods = parse_methods(method)
    if Path(data).is_dir():
        data = os.path.normpath(data)  # one store, however the folder was typed
    elif unlabelled:
        raise bad_value("data", data, "--unlabelled is for folders, and there is none of this name")
    chosen = (size, test_share, skip_bad, unlabelled)
    usual = folder_name("pretrain", Path(data).name, source=data, choices=chosen)
    data = with_options(data, size, test_share, skip_bad, unlabelled)
    given = {
        "network": network,
        "epochs": epochs,
        "batch": batch,
        "learning_rate": learning_rate,
        "warm_up": warm_up,
    }
    saved = split is not None and is_split_file(split)
    imbalances = _imbalances(rho, split, saved, unlabelled)
    if head is not None and rho is None and not saved:
        raise UsageError("head: of a long tail, which --rho or a split file makes")
    if save_split is not None and len(imbalances) > 1:
        raise UsageError("save_split: a file holds one split; name one rho")
    study = _study(
        data,
        rho=imbalances,
        way=methods,
        split=(split or "exponential") if rho is not None or saved else AS_IS,
        head=head or "full",
        balanced=control and not unlabelled and (rho is not None or saved),
        given=given,
        seeds=seeds,
        weight_decay=weight_decay,
        temperature=temperature,
        crop=crop,
        protocols=tuple(word.strip() for word in protocols.split(",") if word.strip()),
        shots=shots,
        precision=precision,
        compile=compile_,
    )
    store = out if out is not None else Path("runs") / usual
    if save is not None and not store.exists():  # (else it is for the store to say)
        network_folder(study, "float32", save, overwrite)
    check_before(study, save_split, overwrite)
    began = time.time()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from rarefy.tools.longtail.several_processes import pretrain_together

        pretrain_together(
            study.tasks(), methods, seeds, store, device, save, max_seconds, overwrite
        )
        return
    execution = run_study(
        study, "quick", store, device, "float32", overwrite, max_seconds, jobs, save, threads
    )
    if as_json:
        typer.echo(json.dumps(_describe(study, execution), indent=1))
    elif execution.cells_done:
        if unlabelled:
            typer.echo("no labels: nothing is judged; rarefy probe does, with labelled images")
        else:
            print_(quality_table(study, execution.dataset))
            for line in differences(study, execution.dataset):
                typer.echo(line)
        typer.echo(f"store: {execution.path}" + spell_saved(save, began, _not_saved(execution)))
    if not execution.finished:
        raise OutOfTime(execution.note)
    if _all_stopped(execution):
        raise RunError("no training came to its end: the loss is no number (see above)")


def _imbalances(
    rho: str | None, split: str | None, saved: bool, unlabelled: bool
) -> tuple[float, ...]:
    if unlabelled and (rho is not None or split is not None):
        word = "split" if rho is None else "rho"
        raise UsageError(f"{word}: without labels nobody knows which class an image is of")
    if rho is None:
        if split not in (None, AS_IS) and not saved:
            raise bad_value("split", split, "needs --rho, or is a split file (.json or .txt)")
        return (1.0,)
    if saved or split == AS_IS:
        raise UsageError(f"rho: {'a split file' if saved else AS_IS} has its own imbalance")
    try:
        return tuple(float(part) for part in rho.split(","))
    except ValueError:
        raise UsageError(f"rho={rho!r}: must be numbers, separated by commas") from None


def _study(
    data: str, balanced: bool, given: dict[str, Any], rho: tuple[float, ...], **others: Any
) -> Any:
    import torch

    from rarefy.studies import get_study
    from rarefy.tools.longtail.recipes import usual_pretraining
    from rarefy.tools.longtail.sets import Tail, parts_of

    # (the smallest of several long tails must have enough images too)
    tail = Tail(others["split"], max(rho), others["head"])
    parts = parts_of(data, tail, 0, torch.device("cpu"))
    side = parts.seen.images.shape[2]
    usual = usual_pretraining(len(parts.seen), side, given["network"], given["batch"])
    chosen = {name: usual[name] if value is None else value for name, value in given.items()}
    images = ("long-tail", "balanced") if balanced else ("long-tail",)
    return get_study("pretrain-images").at(
        "quick", data=data, images=images, rho=rho, **others, **chosen
    )


def _trained(execution: Any) -> list[str]:
    from rarefy.train.simclr.method import Method

    names = map(str, execution.dataset["way"].values)
    return [name for name in names if Method.parse(name).trained]


def _all_stopped(execution: Any) -> bool:
    """All that was trained ended with a loss that is no number."""
    trained = _trained(execution)
    ended = execution.dataset["nonfinite_step"].sel(way=trained)
    return bool(trained) and bool((ended >= 0).all())


def _not_saved(execution: Any) -> str:
    if not _trained(execution):
        return "nothing was trained"
    return "all stopped, not finite" if _all_stopped(execution) else ""


def _describe(study: Study, execution: Any) -> dict[str, Any]:
    from rarefy.tools.longtail.overtraining import courses
    from rarefy.tools.longtail.readings import rows

    return {
        "store": str(execution.path),
        "cells": execution.cells,
        "cells_done": execution.cells_done,
        "finished": execution.finished,
        "rows": list(rows(execution.dataset, study.parameters()["protocols"][0])),
        "past_best": [one.described() for one in courses(execution.dataset) if one.certain],
    }
