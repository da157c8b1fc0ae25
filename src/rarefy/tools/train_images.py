"""``rarefy.train``: networks on one's own images, dense and pruned beside each other."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Context, Output
from rarefy.core.errors import bad_value
from rarefy.core.settings import resolve_device
from rarefy.core.threads import exactly
from rarefy.core.writing import check_place
from rarefy.nets.builder import build
from rarefy.sweep.cached import cached_npz, hash_of
from rarefy.sweep.examine import examine
from rarefy.sweep.runner import check_run, execute, network_folder
from rarefy.sweep.store import beside
from rarefy.tools.compared_run import given_or_usual, image_source
from rarefy.tools.forecasting import forecast
from rarefy.tools.image_data import on_device, some_of, with_options
from rarefy.tools.keep_race import AUTO, race
from rarefy.tools.pixel_baseline import pixel_confusion
from rarefy.tools.recipes import usual_network, usual_recipe, usual_seeds
from rarefy.tools.sparse_experiment import SMALLEST, SparseTraining
from rarefy.tools.sparse_training import Outcome, Task
from rarefy.tools.train_run import TrainRun

CPU = torch.device("cpu")
PRUNING = 1.5
"""How much longer a training is than its dense one by its epochs alone, on average: choosing masks
at every update, and looking at test images."""


@dataclass(frozen=True, kw_only=True)
class TrainImages(SparseTraining):
    """Any image set, any network: what ``rarefy train`` runs."""

    name: ClassVar[str] = "train-images"
    version: ClassVar[int] = 2  # of the first, no classes are known
    title: ClassVar[str] = "Your own images: dense and pruned beside each other"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": SMALLEST,
        "quick": {},
        "paper": {"seeds": 10, "epochs": 40},
    }

    keep: tuple[float, ...] = (1.0, 0.3)
    batch: int = 64
    learning_rate: float = 0.05
    classes: tuple[str, ...] = ()
    """names of the classes, so that a store says them without its images; none: those of data"""

    def task(self, noise: float, drawn: str, to_pixels: float = 1.0) -> Task:
        return replace(super().task(noise, drawn, to_pixels), confused=True)

    def outputs(self) -> tuple[Output, ...]:
        by_class = ("true_class", "answered_class")
        return (
            *super().outputs(),
            Output("confusion", ("test_noise", *by_class), "test images by class and answer"),
            Output("pixel_confusion", by_class, "the same of a logistic regression on pixels"),
            Output("train_images", ("true_class",), "training images of each class"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        names = np.array(self.classes or on_device(self.data, CPU).classes)
        return {**super().coordinates(), "true_class": names, "answered_class": names}

    def _train(self, cell: Mapping[str, Any], key: int, context: Context) -> dict[str, np.ndarray]:
        return super()._train(cell, key, context) | self._without_network(context)

    def _without_network(self, context: Context) -> dict[str, np.ndarray]:
        """What is the same in all cells: computed by the first."""
        data = on_device(self.data, CPU)
        if self.classes and self.classes != data.classes:
            raise bad_value("classes", self.classes, f"must be those of {self.data}")
        train, test = some_of(data.train, self.samples), some_of(data.test, self.test_samples)

        def compute() -> dict[str, np.ndarray]:
            counts = torch.bincount(train.labels, minlength=len(data.classes))
            found = {"pixel_confusion": pixel_confusion(train, test), "train_images": counts}
            return {name: np.asarray(one, dtype=np.float64) for name, one in found.items()}

        if context.scratch is None:
            return compute()
        named = hash_of("pixels", data.fingerprint, self.samples, self.test_samples)
        return cached_npz(context.scratch / f"{named}.npz", compute, context.advance, 0)

    def _measured(self, outcome: Outcome) -> dict[str, np.ndarray]:
        found = super()._measured(outcome)
        counted = np.asarray(outcome.confusions, dtype=np.float64)
        failed = found["nonfinite_step"] >= 0
        return found | {"confusion": np.full_like(counted, np.nan) if failed else counted}

    @property
    def setting(self) -> str:
        return f"{self.data}, {self.network}"


def train(
    data: str | Path,
    keep: float | Sequence[float] | str = 0.3,
    network: str | None = None,
    *,
    epochs: int | None = None,
    seeds: int | None = None,
    update: str = "project",
    granularity: str = "filter",
    every: int = 1,
    noise: float | Sequence[float] = 0.0,
    test_noise: float | Sequence[float] = 0.0,
    noise_once: bool = False,
    batch: int | None = None,
    optimizer: str | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    schedule: str = "cosine",
    shift: int | None = None,
    flip: bool | None = None,
    samples: int = 0,
    test_samples: int = 0,
    precision: str = "auto",
    compiled: bool = False,
    size: int | None = None,
    test_share: float | None = None,
    skip_bad: bool = False,
    device: str = "auto",
    jobs: int | None = 1,
    threads: int | None = None,
    out: Path | str | None = None,
    save: Path | str | None = None,
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    go_on: str = "the same call",
) -> TrainRun:
    """Train a network on images, dense and pruned while it trains, and compare the two.

    Every seed trains the dense network and one for each share of ``keep``, from the same weights on
    the same batches, so that differences can be told from luck. What is finished is kept in a
    store: the same call goes on where it was, more seeds extend it.

    Arguments:
        data: digits, mnist, cifar10, cifar100, or a folder of class folders.
        keep: shares of the weights to keep, or "auto": one is chosen by a short race on held-out
            training images. The dense network is always trained too.
        network: lenet, cnn, cnn-small, resnet9, resnet18, vit, ``timm:NAME``,
            ``torchvision:NAME``, or yours as ``module:callable``; by the set and the device if not
            given, as are the next two.
        epochs: how often a training sees each image.
        seeds: repeats, each dense and pruned from one start; fewer than 5 decide nothing.
        update: of pruned weights: project (zero, trained on), dense or masked.
        granularity: of what the share is kept: filter, layer, global or neuron.
        every: updates between two choices of masks.
        noise: stds of Gaussian noise in training, of pixels in [0, 1].
        test_noise: stds of noise in the test; every network is asked at all of them.
        noise_once: training noise is drawn once per image, not anew each time.
        schedule: of the learning rate: cosine, step or constant.
        batch, optimizer, learning_rate, weight_decay, shift, flip: by the kind and size of the set
            if not given (``rarefy.tools.recipes``).
        samples, test_samples: images used; 0: all.
        precision: auto (bf16 on a GPU), bf16 or float32.
        compiled: by ``torch.compile``; pays for large networks on a GPU.
        size, test_share, skip_bad: of a folder: side of the images, share for the test, whether
            files that cannot be read are left out.
        device: auto, cpu or cuda.
        jobs: trainings at once, each in a process of its own; None: as many as usual (a script must
            then guard its main part).
        threads: inside each training; 1 on a CPU if not given.
        out: the store; ``runs/train-DATA-NETWORK`` if not given.
        save: a folder into which the trained networks are written.
        overwrite: replace what was written before.
        max_seconds: stop cleanly after so many seconds.
        progress: say how long it will take, and show a bar.
        go_on: what a message tells to do when it is not finished.

    Returns:
        A run: ``decision`` says what to use, ``classes`` is the judging table per class and
        ``frame`` the comparison, both as DataFrames; ``path`` is the store (``rarefy report`` makes
        a page of it), ``dataset`` all that was measured, ``finished`` false when time was over
        before all was trained.

    Example:
        >>> found = rarefy.train("digits", keep=0.3, network="cnn-small", epochs=1, seeds=1,
        ...                      samples=200, test_samples=100)
        >>> found.frame["keep"].tolist()
        [1.0, 0.3]
        >>> len(found.classes)  # two networks, ten classes
        20
        >>> print(found.decision.sentence)
        none of these beats a logistic regression on pixels: ...
    """
    options: dict[str, Any] = {"size": size, "test_share": test_share, "skip_bad": skip_bad}
    images = on_device(with_options(str(data), **options), CPU)
    where = resolve_device(device)
    network = usual_network(images, where) if network is None else network
    named = (network, AUTO) if keep == AUTO else (network,)
    source, usual_store = image_source("train", str(data), *named, **options)
    store = usual_store if out is None else Path(out)
    # before anything is written: a model that cannot take these images never will
    channels, side, _ = images.shape
    build(network, channels=channels, size=side, classes=len(images.classes))
    given = {
        "epochs": epochs,
        "batch": batch,
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "shift": shift,
        "flip": flip,
    }
    recipe = usual_recipe(images, network, samples, where.type == "cpu")
    chosen = given_or_usual(given, recipe)
    if seeds is None:
        seeds = usual_seeds(images, network, chosen["epochs"], samples, where.type == "cpu")
    experiment = TrainImages.at(
        "quick",
        data=source,
        network=network,
        keep=(1.0,) if keep == AUTO else tuple(dict.fromkeys((1.0, *_several(keep)))),
        noise=_several(noise),
        test_noise=_several(test_noise),
        noise_resampling=("once" if noise_once else "fresh",),
        update=(update,),
        granularity=granularity,
        every=every,
        schedule=schedule,
        samples=samples,
        test_samples=test_samples,
        seeds=seeds,
        precision=precision,
        compile=compiled,
        classes=images.classes,
        warm_up=recipe["warm_up"],
        label_smoothing=recipe["label_smoothing"],
        **chosen,
    )
    check_run(experiment, max_seconds, jobs, threads)
    check_place(store)
    if save is not None:
        network_folder(experiment, "float32", Path(save), overwrite)
    began, choice = time.monotonic(), ""
    if keep == AUTO:
        experiment, choice = _with_keep(experiment, store, where, overwrite, max_seconds)
        if progress:
            print(choice, file=sys.stderr)
        if max_seconds is not None:
            max_seconds = max(max_seconds - (time.monotonic() - began), 1e-9)
    if progress and (words := forecast(experiment, store, device, jobs, overwrite, PRUNING)):
        print(words, file=sys.stderr)
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
        models=None if save is None else Path(save),
        threads=threads,
    )
    return replace(TrainRun.of(experiment, execution), choice=choice)


def _with_keep(
    experiment: TrainImages,
    store: Path,
    device: torch.device,
    overwrite: bool,
    max_seconds: float | None,
) -> tuple[TrainImages, str]:
    """With the keep of a race, and why; a store that was begun keeps the one it has."""
    before = None if overwrite else examine(store)
    if before is not None:
        keeps = tuple(before["spec"]["parameters"].get("keep", ()))
        words = ", ".join(f"{keep:g}" for keep in keeps if keep != 1)
        return replace(experiment, keep=keeps), f"keep {words}: as the store was begun with"
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    # (what a race leaves there goes when the store is made)
    context = Context(device=device, deadline=deadline, scratch=beside(store, "scratch"))
    with exactly(1) if device.type == "cpu" else contextlib.nullcontext():
        found = race(experiment, context)
    return replace(experiment, keep=(1.0, found.beside)), found.sentence


def _several(values: float | Sequence[float] | str) -> tuple[float, ...]:
    if isinstance(values, str):
        raise bad_value("keep", values, f"must be shares of the weights, or {AUTO!r}")
    many = isinstance(values, Sequence | np.ndarray)
    return tuple(values) if many else (values,)  # type: ignore[arg-type,return-value]
