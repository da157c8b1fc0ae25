"""``rarefy.pretrain_images``: methods of pre-training beside each other on one's own images."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.writing import check_output
from rarefy.data.longtail import split_file
from rarefy.data.longtail.split import LongTailSplit
from rarefy.sweep.runner import execute, network_folder
from rarefy.tools.compared_run import ComparedRun, given_or_usual, image_source
from rarefy.tools.longtail.experiment import SMALLEST, LongTailPretraining
from rarefy.tools.longtail.overtraining import courses
from rarefy.tools.longtail.pretraining import check_task
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL, rows
from rarefy.tools.longtail.recipes import usual_pretraining
from rarefy.tools.longtail.sets import AS_IS, Tail, is_split_file, parts_of, tail_notes
from rarefy.tools.longtail.several_processes import pretrain_together
from rarefy.train.simclr.method import Method, parse_methods


@dataclass(frozen=True, kw_only=True)
class PretrainImages(LongTailPretraining):
    """Any image set: what ``rarefy pretrain`` runs."""

    name: ClassVar[str] = "pretrain-images"
    title: ClassVar[str] = "Your own images: features learnt without labels, head and tail"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "rho": (4.0,),
            "algorithm": ("simclr", "branches:0.1", "pixels"),
            "images": ("long-tail",),
            **SMALLEST,
        },
        "quick": {},
        "paper": {"seeds": 10, "epochs": 200},
    }

    algorithm: tuple[str, ...] = ("simclr", "branches:0.1")
    rho: tuple[float, ...] = (20.0,)
    epochs: int = 40
    batch: int = 128
    learning_rate: float = 0.1
    warm_up: float = 0.1
    evaluations: int = 4


class PretrainRun(ComparedRun):
    """What ``rarefy.pretrain_images`` gives: per set and method, accuracies in per cent for head
    and tail by the first protocol, and the difference to the baseline, seed by seed."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(rows(self.dataset, self.experiment.parameters()["protocols"][0]))

    @property
    def trained(self) -> list[str]:
        """The methods that train something."""
        names = map(str, self.dataset["algorithm"].values)
        return [name for name in names if Method.parse(name).trained]

    @property
    def all_stopped(self) -> bool:
        """All that was trained ended with a loss that is no number."""
        ended = self.dataset["nonfinite_step"].sel(algorithm=self.trained)
        return bool(self.trained) and bool((ended >= 0).all())

    def described(self) -> dict[str, Any]:
        past = [one.described() for one in courses(self.dataset) if one.certain]
        return {**super().described(), "past_best": past}


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
    seeds: int = 4,
    batch: int | None = None,
    learning_rate: float | None = None,
    warm_up: float | None = None,
    weight_decay: float = 1e-4,
    temperature: float = 0.2,
    crop: float = 0.0,
    protocols: str | Sequence[str] = ("linear", "knn"),
    shots: int = 10,
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
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    go_on: str = "the same call",
) -> PretrainRun | None:
    """Learn features of a set without labels by several methods, and compare them, head and tail.

    Every seed has one order of the classes, and all methods start from the same weights and see the
    same views, so that differences can be told from luck. What is finished is kept in a store: the
    same call goes on where it was. (``rarefy.pretrain`` trains one method on an array, or a module
    of yours, and gives the network.)

    Arguments:
        data: digits, mnist, cifar10, cifar100, or a folder of class folders.
        method: simclr, pruned:KEEP, branches:KEEP, sdclr; pixels, untrained. The first that trains
            without masks is what others are compared with.
        network: lenet, cnn, resnet18, vit, or yours as ``module:callable``.
        network, epochs, batch, learning_rate, warm_up: by the number and size of the images if not
            given.
        rho: makes the set long-tailed: images of the largest class over those of the smallest.
        split: shape of the tail: exponential, step, pareto; or a split file (.json, .txt).
        head: images of the largest class: full, sdclr (a tenth is left out) or a number.
        control: also train on the balanced set of equal size, with rho.
        save_split: a file (.json) for the images of the first seed.
        seeds: repeats, each with another order of the classes where there is a tail.
        weight_decay, temperature: of the loss and its optimiser.
        crop: least share of an image that a view shows; 0: the usual one.
        protocols: how features are judged: linear, long-tail, few, knn.
        shots: labels per class of the protocol few.
        unlabelled: of a folder: all images below it, no classes; nothing is judged.
        precision, compiled, size, test_share, skip_bad, device, jobs, threads, overwrite,
            max_seconds, progress, go_on: as in ``rarefy.train``.
        out: the store; ``runs/pretrain-DATA`` if not given.
        save: a folder into which the trained backbones are written.

    Returns:
        A run: ``frame`` is the comparison as a DataFrame, ``path`` the store, ``dataset`` all that
        was measured. None under torchrun, where one training is printed by its first process.

    Example:
        >>> found = rarefy.pretrain_images("digits", ["simclr", "branches:0.1"], rho=20, seeds=3)
        >>> found.frame[["method", "overall", "few", "difference"]]
    """
    data, save = str(data), None if save is None else Path(save)
    save_split = None if save_split is None else Path(save_split)
    protocols = (protocols,) if isinstance(protocols, str) else tuple(protocols)
    methods = parse_methods(method if isinstance(method, str) else ",".join(method))
    if unlabelled and not Path(data).is_dir():
        raise bad_value("data", data, "--unlabelled is for folders, and there is none of this name")
    source, usual_store = image_source(
        "pretrain", data, size=size, test_share=test_share, skip_bad=skip_bad, unlabelled=unlabelled
    )
    imbalances = _imbalances(rho, split, unlabelled)
    tailed = rho is not None or (split is not None and is_split_file(split))
    if head is not None and not tailed:
        raise UsageError("head: of a long tail, which --rho or a split file makes")
    if save_split is not None and len(imbalances) > 1:
        raise UsageError("save_split: a file holds one split; name one rho")
    # (the smallest of several long tails must have enough images too)
    tail = Tail((split or "exponential") if tailed else AS_IS, max(imbalances), head or "full")
    seen = parts_of(source, tail, 0, torch.device("cpu")).seen
    given = {
        "network": network,
        "epochs": epochs,
        "batch": batch,
        "learning_rate": learning_rate,
        "warm_up": warm_up,
    }
    experiment = PretrainImages.at(
        "quick",
        data=source,
        images=(LONG_TAIL, BALANCED) if control and tailed and not unlabelled else (LONG_TAIL,),
        rho=imbalances,
        algorithm=methods,
        split=tail.shape,
        head=tail.head,
        seeds=seeds,
        weight_decay=weight_decay,
        temperature=temperature,
        crop=crop,
        protocols=protocols,
        shots=shots,
        precision=precision,
        compile=compiled,
        **given_or_usual(given, usual_pretraining(len(seen), seen.images.shape[2], network, batch)),
    )
    store = Path(usual_store if out is None else out)
    if save is not None and not store.exists():  # (else it is for the store to say)
        network_folder(experiment, "float32", save, overwrite)
    _check_before(experiment, save_split, overwrite)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        pretrain_together(
            experiment.tasks(), methods, seeds, store, device, save, max_seconds, overwrite
        )
        return None
    execution = execute(
        experiment,
        "quick",
        device,
        out=store,
        overwrite=overwrite,
        max_seconds=max_seconds,
        progress=progress,
        go_on=go_on,
        jobs=jobs,
        models=save,
        threads=threads,
    )
    return PretrainRun.of(experiment, execution)


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


def _check_before(
    experiment: LongTailPretraining, save_split: Path | None, overwrite: bool
) -> None:
    """The set, its split, files in the way: before anything is trained or written."""
    if save_split is not None and save_split.suffix != ".json":
        raise bad_value("save_split", str(save_split), "must end in .json, as --split reads it")
    for task in experiment.tasks():
        parts = check_task(task, torch.device("cpu"), experiment.seeds)
        if task.tail.balanced:
            continue
        for note in tail_notes(task.tail, parts):
            print(f"note: {note}", file=sys.stderr)
        if save_split is not None:
            _write_split(parts.split, save_split, overwrite)


def _write_split(split: LongTailSplit | None, path: Path, overwrite: bool) -> None:
    if split is None:
        raise UsageError("save_split: all images are used; there is no split to save")
    with contextlib.suppress(UsageError):  # (no split, or none at all)
        if split_file.load_split(path).fingerprint == split.fingerprint:
            return  # it may come from another machine, without a record
    check_output(path, split.fingerprint, overwrite=overwrite, option="save_split")
    split_file.save_split(split, path, overwrite)
