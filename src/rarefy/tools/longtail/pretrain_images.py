"""``rarefy.pretrain_images``: methods of pre-training beside each other on one's own images."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.settings import resolve_device
from rarefy.core.writing import check_output, check_place
from rarefy.data.images.folder_scan import NoClasses
from rarefy.data.longtail import split_file
from rarefy.data.longtail.split import LongTailSplit
from rarefy.sweep.making import along
from rarefy.sweep.runner import check_run, execute, network_folder
from rarefy.sweep.store import Store
from rarefy.tools.compared_run import given_or_usual, image_source
from rarefy.tools.decision import FEWEST
from rarefy.tools.longtail.experiment import LongTailPretraining
from rarefy.tools.longtail.features_file import Outputs, check_chosen, write_chosen
from rarefy.tools.longtail.method_race import AUTO, BESIDE, RACED, outcome, raced
from rarefy.tools.longtail.pretrain_run import PretrainImages, PretrainRun
from rarefy.tools.longtail.pretraining import check_task
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL
from rarefy.tools.longtail.recipes import usual_pretraining
from rarefy.tools.longtail.sets import AS_IS, Tail, is_split_file, parts_of, tail_notes
from rarefy.tools.longtail.several_processes import pretrain_together
from rarefy.train.simclr.method import Method, parse_methods

ORDERS = 6
"""Seeds where each has an order of the classes: three mirrored pairs."""


def pretrain_images(
    data: str | Path,
    method: str | Sequence[str] = ("simclr", "branches:0.1", "pixels"),
    network: str | None = None,
    *,
    rho: float | Sequence[float] | None = None,
    split: str | None = None,
    head: str | None = None,
    control: bool = True,
    save_split: Path | str | None = None,
    epochs: int | None = None,
    seeds: int | None = None,
    batch: int | None = None,
    learning_rate: float | None = None,
    warm_up: float | None = None,
    weight_decay: float = 1e-4,
    temperature: float = 0.2,
    crop: float = 0.0,
    protocols: str | Sequence[str] = ("linear", "knn"),
    shots: int = 10,
    stop: bool = True,
    precision: str = "auto",
    compiled: bool = False,
    size: int | None = None,
    test_share: float | None = None,
    skip_bad: bool = False,
    unlabelled: bool = False,
    device: str = "auto",
    jobs: int | None = 1,
    threads: int | None = None,
    out: Path | str | None = None,
    save: Path | str | None = None,
    features: Path | str | None = None,
    export: Path | str | None = None,
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    go_on: str = "the same call",
    before: Callable[[PretrainImages, Path], None] | None = None,
) -> PretrainRun | None:
    """Learn features of a set without labels by several methods, and compare them, head and tail.

    Every seed has one order of the classes, and all methods start from the same weights and see the
    same views, so that differences can be told from luck. Of each training the network is kept and
    judged whose nearest neighbours of held-out training images were best on the way, not the last
    one. What is finished is kept in a store: the same call goes on where it was.
    (``rarefy.pretrain`` trains one method on an array, or a module of yours, and gives the
    network.)

    Arguments:
        data: digits, mnist, cifar10, cifar100, or a folder of class folders.
        method: simclr, pruned:KEEP, branches:KEEP, sdclr; pixels, untrained. The first that trains
            without masks is what others are compared with. ``auto``: simclr or branches:0.1,
            by held-out training images after one whole training each (simclr unless the other is
            better by more than a standard error); raw pixels are judged beside it.
        network: lenet, cnn, resnet9, resnet18, vit, ``timm:NAME``, ``torchvision:NAME``, or
            yours as ``module:callable``; by the images and the device if not given.
        epochs, batch, learning_rate, warm_up: by the number and size of the images and the device
            if not given (``tools.longtail.recipes``).
        rho: makes the set long-tailed: images of the largest class over those of the smallest.
        split: shape of the tail: exponential, step, pareto; or a split file (.json, .txt).
        head: images of the largest class: full, sdclr (a tenth is left out) or a number.
        control: also train on the balanced set of equal size, with rho.
        save_split: a file (.json) for the images of the first seed.
        seeds: repeats, each with another order of the classes where rho makes a tail; if not given
            6 of those (three mirrored pairs), else 5. Fewer than 5 decide nothing. 1 of unlabelled
            images, where nothing is decided.
        weight_decay, temperature: of the loss and its optimiser.
        crop: least share of an image that a view shows; 0: the usual one.
        protocols: how features are judged: linear, long-tail, few, knn.
        shots: labels per class of the protocol few.
        stop: end a training where over-training is certain: at two looks in a row fewer held-out
            images are right than at the best look, by more than luck explains.
        unlabelled: of a folder: all images below it, no classes; nothing is judged, networks are
            saved.
        precision, compiled, size, test_share, skip_bad, device, jobs, threads, overwrite,
            max_seconds, progress, go_on: as in ``rarefy.train``.
        out: the store; ``runs/pretrain-DATA`` if not given.
        save: a folder into which the trained backbones are written.
        features: a file (.parquet, .csv, .npz) with a row of features per image, of the first seed
            of the method that the decision names, or else of the first that trains; networks are
            saved then, if ``save`` does not say where in ``OUT-networks``.
        export: the same network as a program (.pt2), which PyTorch loads without rarefy.
        before: is told what will be run and where it is kept, before it starts.

    Returns:
        A run: ``decision`` has the sentence, ``choice`` that of ``auto``, ``frame`` is the
        comparison as a DataFrame,
        ``by_class`` the same per class, ``path`` the store, ``dataset`` all that was measured. None
        under torchrun, where one training is printed by its first process.

    Example:
        >>> found = rarefy.pretrain_images("digits", ["simclr", "pixels"], "lenet", epochs=1,
        ...                                seeds=1, save="nets")
        >>> found.frame["method"].tolist()
        ['simclr', 'pixels']
        >>> print(found.decision.sentence)
        cannot tell simclr from raw pixels: at least 4 more seeds would; ...
    """
    data, outputs = str(data), Outputs(_path(features), _path(export))
    save, save_split = _path(save), _path(save_split)
    protocols = (protocols,) if isinstance(protocols, str) else tuple(protocols)
    methods, auto = _methods(method, unlabelled)
    if unlabelled and not Path(data).is_dir():
        raise bad_value("data", data, "--unlabelled is for folders, and there is none of this name")
    named = ("pretrain", data, AUTO) if auto else ("pretrain", data)
    source, usual_store = image_source(
        *named, size=size, test_share=test_share, skip_bad=skip_bad, unlabelled=unlabelled
    )
    imbalances = _imbalances(rho, split, unlabelled)
    tailed = rho is not None or (split is not None and is_split_file(split))
    if head is not None and not tailed:
        raise UsageError("head: of a long tail, which --rho or a split file makes")
    if save_split is not None and len(imbalances) > 1:
        raise UsageError("save_split: a file holds one split; name one rho")
    # (the smallest of several long tails must have enough images too)
    tail = Tail((split or "exponential") if tailed else AS_IS, max(imbalances), head or "full")
    try:
        seen = parts_of(source, tail, 0, torch.device("cpu")).seen
    except NoClasses as error:
        raise UsageError(f"{error}; --unlabelled takes all images below it") from None
    given = {
        "network": network,
        "epochs": epochs,
        "batch": batch,
        "learning_rate": learning_rate,
        "warm_up": warm_up,
    }
    usual = usual_pretraining(
        len(seen), seen.images.shape[2], network, batch, resolve_device(device).type
    )
    usual_seeds = 1 if unlabelled else ORDERS if rho is not None else FEWEST
    experiment = PretrainImages.at(
        "quick",
        data=source,
        images=(LONG_TAIL, BALANCED) if control and tailed and not unlabelled else (LONG_TAIL,),
        rho=imbalances,
        algorithm=methods,
        split=tail.shape,
        head=tail.head,
        seeds=usual_seeds if seeds is None else seeds,
        weight_decay=weight_decay,
        temperature=temperature,
        crop=crop,
        protocols=protocols,
        shots=shots,
        stop=stop,
        precision=precision,
        compile=compiled,
        **given_or_usual(given, usual),
    )
    store = Path(usual_store if out is None else out)
    if save is None and (outputs or unlabelled):  # (without labels there is nothing else to have)
        save = along(store, "networks")
    written_of = check_chosen(outputs, experiment, overwrite) if outputs else ""
    if save is not None and not store.exists():  # (else it is for the store to say)
        for one in map(partial(_chosen, experiment), RACED) if auto else (experiment,):
            network_folder(one, "float32", save, overwrite)
    check_run(experiment, max_seconds, jobs, threads)
    check_place(store)
    race = along(store, "race")
    made = _check_before(experiment, save_split)
    together = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if not together:
        begun = (race, raced(experiment)) if auto else (store, experiment)
        Store(*begun, "quick", "float32", overwrite)  # (refuses that of another run)
    if save_split is not None:  # the last that can be refused, and the first that is written
        _write_split(made, save_split, overwrite)
    if together:
        pretrain_together(
            experiment.tasks(),
            methods,
            experiment.seeds,
            store,
            device,
            save,
            max_seconds,
            overwrite,
        )
        return None
    deadline = None if max_seconds is None else time.monotonic() + max_seconds

    def run(what: PretrainImages, place: Path, models: Path | None) -> PretrainRun:
        if before is not None:
            before(what, place)
        execution = execute(
            what,
            "quick",
            device,
            out=place,
            overwrite=overwrite,
            max_seconds=None if deadline is None else max(deadline - time.monotonic(), 1e-9),
            progress=progress,
            go_on=go_on,
            jobs=jobs,
            models=models,
            threads=threads,
        )
        return PretrainRun.of(what, execution, networks=models)

    told = ""
    if auto:
        first = run(raced(experiment), race, None)
        if not first.finished or first.all_stopped:
            return first
        chosen = outcome(first.dataset, protocols[0])
        told, experiment = chosen.sentence, _chosen(experiment, chosen.chosen)
        if progress:
            print(told, file=sys.stderr)
    found = replace(run(experiment, store, save), choice=told)
    if outputs and found.finished and not found.all_stopped:
        write_chosen(outputs, found, written_of, device, overwrite)
    return found


def _methods(given: str | Sequence[str], unlabelled: bool) -> tuple[tuple[str, ...], bool]:
    """What is trained, first that by whose first cell the time of all is told; and whether it is
    for us to choose."""
    text = given if isinstance(given, str) else ",".join(given)
    if AUTO not in (word.strip() for word in text.split(",")):
        methods = sorted(parse_methods(text), key=lambda one: not Method.parse(one).trained)
        if unlabelled:  # (what trains nothing could only be judged)
            methods = [one for one in methods if Method.parse(one).trained]
            if not methods:
                raise bad_value("method", text, "learns nothing, and is not judged without labels")
        return tuple(methods), False
    if text.strip() != AUTO:
        raise bad_value("method", text, f"{AUTO} stands alone: it chooses {' or '.join(RACED)}")
    if unlabelled:
        raise bad_value("method", AUTO, "chooses by labels, and there are none; name one: simclr")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise bad_value("method", AUTO, "under torchrun one method is trained; name it: simclr")
    return RACED, True


def _chosen(experiment: PretrainImages, method: str) -> PretrainImages:
    return replace(experiment, algorithm=(method, BESIDE))


def _path(name: Path | str | None) -> Path | None:
    return None if name is None else Path(name)


def _imbalances(
    rho: float | Sequence[float] | None, split: str | None, unlabelled: bool
) -> tuple[float, ...]:
    saved = split is not None and is_split_file(split)
    if unlabelled and (rho is not None or split is not None):
        word = "split" if rho is None else "rho"
        raise UsageError(f"{word}: without labels nobody knows which class an image is of")
    if rho is None:
        if split not in (None, AS_IS) and not saved:
            raise bad_value("split", split, "needs --rho, or is a split file (.json or .txt)")
        return (1.0,)
    if saved or split == AS_IS:
        raise UsageError(f"rho: {'a split file' if saved else AS_IS} has its own imbalance")
    return (rho,) if isinstance(rho, int | float) else tuple(rho)


def _check_before(experiment: LongTailPretraining, save_split: Path | None) -> LongTailSplit | None:
    """The set and its split, which is given, before anything is trained or written."""
    split = None
    if save_split is not None and save_split.suffix != ".json":
        raise bad_value("save_split", str(save_split), "must end in .json, as --split reads it")
    for task in experiment.tasks():
        parts = check_task(task, torch.device("cpu"), experiment.seeds)
        if task.tail.balanced:
            continue
        for note in tail_notes(task.tail, parts):
            print(f"note: {note}", file=sys.stderr)
        split = parts.split
    return split


def _write_split(split: LongTailSplit | None, path: Path, overwrite: bool) -> None:
    if split is None:
        raise UsageError("save_split: all images are used; there is no split to save")
    with contextlib.suppress(UsageError):  # (no split, or none at all)
        if split_file.load_split(path).fingerprint == split.fingerprint:
            return  # it may come from another machine, without a record
    check_output(path, split.fingerprint, overwrite=overwrite, option="save_split")
    split_file.save_split(split, path, overwrite)
