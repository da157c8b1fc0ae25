"""Networks on real images, dense and pruned beside each other: the grid, one training per cell, its
measures. ``rarefy train`` runs it, and so do the studies of the TopK paper's real data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import OneOf, Whole
from rarefy.core.text import file_name
from rarefy.nets.builder import identity
from rarefy.sweep.cached import cached_npz, hash_of
from rarefy.sweep.one_by_one import one_by_one, spread_epochs
from rarefy.tools.image_data import data_identity, noise_in_pixels
from rarefy.tools.sparse_training import Outcome, Task, train_one
from rarefy.train.image_batches import Augmentation
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.recipe import Recipe

DRAWN = ("fresh", "once")
UNITS = ("pixel", "std")
SMALLEST: dict[str, Any] = {
    "seeds": 2,
    "network": "lenet",
    "epochs": 2,
    "batch": 16,
    "samples": 160,
    "test_samples": 100,
    "evaluations": 1,
}
"""What makes any of these experiments a matter of seconds."""
CELL_BYTES = 1_000_000_000
"""A set of 60,000 images with an epoch of them as floats, and a network beside it."""


@dataclass(frozen=True, kw_only=True)
class SparseTraining(Experiment):
    """Networks trained on images with noise, dense and with shares of their weights. All cells of
    a seed begin with the same weights and see the same images in the same order with the same
    noise, so that a pruned network can be compared with the dense one in pairs."""

    axes: ClassVar[tuple[str, ...]] = ("update", "noise_resampling", "noise", "keep")
    renamed: ClassVar[dict[str, str]] = {
        "drawn": "noise_resampling",
        "watched": "evaluations",
    }
    one_at_a_time: ClassVar[bool] = True

    seeds: int = 3
    data: str = "digits"
    """image set: digits, mnist, cifar10, cifar100, or a folder of class folders"""
    network: str = "cnn"
    """lenet, cnn, cnn-small, resnet9, resnet18, vit, or module:callable"""
    keep: tuple[float, ...] = (1.0, 0.8, 0.5, 0.3, 0.1)
    """shares of the weights that stay, 1 is the dense network"""
    noise: tuple[float, ...] = (0.0,)
    """std of the Gaussian noise on training images"""
    noise_resampling: tuple[Annotated[str, OneOf(DRAWN)], ...] = ("fresh",)
    """noise anew each time an image is shown, or once for all (it can be memorised then)"""
    update: tuple[str, ...] = ("project",)
    """what becomes of pruned weights: project (002: zero, trained on), dense, masked; joined by +
    to what differs from granularity and every: project+global, project+epoch (masks once per
    epoch), masked+once (chosen before training), project+inner (not first and last layer)"""
    noise_unit: Annotated[str, OneOf(UNITS)] = "pixel"
    """of noise and test_noise: pixel (scaled to [0, 1]), or std of the data set's pixels"""
    test_noise: tuple[float, ...] = (0.0,)
    """stds of the noise on test images; every network is asked at all of them"""
    granularity: str = "filter"
    """of what a share is kept: filter (002), layer, global, neuron"""
    every: int = 1
    """updates between two choices of masks"""
    epochs: int = 20
    """times that every image is shown"""
    batch: int = 128
    """images per update"""
    optimizer: str = "sgd"
    """sgd (Nesterov momentum) or adamw"""
    learning_rate: float = 0.1
    """largest learning rate"""
    momentum: float = 0.9
    """of sgd"""
    weight_decay: float = 5e-4
    """of matrices and kernels"""
    schedule: str = "cosine"
    """of the learning rate: cosine, step or constant"""
    warm_up: float = 0.1
    """share of the training over which the rate rises"""
    label_smoothing: float = 0.0
    """share of a label that is spread over all classes"""
    shift: int = 0
    """pixels by which training images are moved at random"""
    flip: bool = False
    """training images are mirrored half the time"""
    samples: int = 0
    """training images used, 0: all"""
    test_samples: int = 0
    """test images used, 0: all"""
    evaluations: Whole = 10
    """how often the test set is looked at on the way, for the curves"""
    precision: str = "auto"
    """auto (bf16 on a GPU), bf16 or float32"""
    compile: bool = False
    """compile the network; pays for large ones on a GPU"""

    def check(self) -> None:
        for keep, rule in product(self.keep, self.update):
            PruningSpec.parse(rule, keep, self.granularity, self.every)
        if 1.0 not in self.keep:
            raise bad_value("keep", self.keep, "must have 1, the dense network to compare with")
        for noise in self.noise:
            self.task(noise, "fresh")

    def task(self, noise: float, drawn: str, to_pixels: float = 1.0) -> Task:
        """One training, all but its pruning; ``to_pixels``: one unit of noise in pixels."""
        return Task(
            data=self.data,
            network=self.network,
            recipe=Recipe(
                epochs=self.epochs,
                optimizer=self.optimizer,
                learning_rate=self.learning_rate,
                momentum=self.momentum,
                weight_decay=self.weight_decay,
                schedule=self.schedule,
                warm_up=self.warm_up,
                label_smoothing=self.label_smoothing,
            ),
            changes=Augmentation(self.shift, self.flip, float(noise) * to_pixels, drawn == "fresh"),
            batch=self.batch,
            samples=self.samples,
            test_samples=self.test_samples,
            test_noise=tuple(float(one) * to_pixels for one in self.test_noise),
            watched=tuple(self.watched_epochs().tolist()),
            precision=self.precision,
            compiled=self.compile,
        )

    def watched_epochs(self) -> np.ndarray:
        """Evenly spread, with the last one."""
        return spread_epochs(self.epochs, self.evaluations)

    def inputs(self) -> dict[str, str]:
        own = identity(self.network)
        return {"data": data_identity(self.data), **({"network": own} if own else {})}

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_accuracy", ("test_noise",), "share of test images classified right"),
            Output("half_accuracy", ("test_noise", "half"), "the same on two halves of them"),
            Output("clean_accuracy", ("half",), "without noise, BatchNorm measured without noise"),
            Output("test_loss", ("test_noise",), "mean cross-entropy on test images"),
            Output("train_accuracy", (), "finished network, training images with new noise"),
            Output("train_loss", (), "finished network, training images with new noise"),
            Output("train_accuracy_clean", (), "the same without noise"),
            Output("train_loss_clean", (), "the same without noise"),
            Output("epoch_loss", ("epoch",), "training loss while the epoch ran"),
            Output("epoch_accuracy", ("epoch",), "training accuracy, noise as shown, while it ran"),
            Output("watched_accuracy", ("watched_epoch",), "on test images without noise, then"),
            Output("watched_loss", ("watched_epoch",), "on test images without noise, then"),
            Output("kept", (), "share of the weights that can be pruned which are not zero"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {
            "test_noise": np.array(self.test_noise, dtype=np.float64),
            "half": np.arange(2),
            "epoch": np.arange(1, self.epochs + 1),
            "watched_epoch": self.watched_epochs(),
        }

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=CELL_BYTES, steps_per_cell=self.epochs)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return one_by_one(cells, lambda cell, key: self._train(cell, key, context))

    def _train(self, cell: Mapping[str, Any], key: int, context: Context) -> dict[str, np.ndarray]:
        noise, keep = float(cell["noise"]), float(cell["keep"])
        to_pixels = 1.0 if self.noise_unit == "pixel" else noise_in_pixels(self.data)
        task = self.task(noise, str(cell["noise_resampling"]), to_pixels)
        if keep == 1:
            return self._dense(cell, task, key, context)
        spec = PruningSpec.parse(str(cell["update"]), keep, self.granularity, self.every)
        return self._measured(train_one(task, spec, key, context, self._name(cell)))

    def _dense(
        self, cell: Mapping[str, Any], task: Task, key: int, context: Context
    ) -> dict[str, np.ndarray]:
        """The dense network knows nothing of update rules: it is trained once for all of them."""
        train = partial(train_one, task, PruningSpec(), key, context, self._name(cell))
        if context.scratch is None or len(self.update) == 1:
            return self._measured(train())
        return cached_npz(
            context.scratch / f"dense-{hash_of(key, task)}.npz",
            lambda: self._measured(train()),
            context.advance,
            self.epochs,
        )

    def network_names(self) -> list[str]:
        axes = {name: getattr(self, name) for name in self.axes} | {"seed": range(self.seeds)}
        cells = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
        return list(dict.fromkeys(map(self._name, cells)))

    def _name(self, cell: Mapping[str, Any]) -> str:
        made_of = f"{Path(self.data).name}-{self.network}"
        name = f"{file_name(made_of)}-keep-{cell['keep']:g}-noise-{cell['noise']:g}"
        for axis in ("update", "noise_resampling"):
            if len(getattr(self, axis)) > 1:
                name += f"-{cell[axis]}"
        return f"{name}-seed-{cell['seed']}"

    def _measured(self, outcome: Outcome) -> dict[str, np.ndarray]:
        history = outcome.history
        found: dict[str, Any] = {
            "test_accuracy": [score.accuracy for score in outcome.test],
            "half_accuracy": outcome.halves,
            "clean_accuracy": outcome.clean_halves,
            "test_loss": [score.loss for score in outcome.test],
            "train_accuracy": outcome.train.accuracy,
            "train_loss": outcome.train.loss,
            "train_accuracy_clean": outcome.train_clean.accuracy,
            "train_loss_clean": outcome.train_clean.loss,
            "epoch_loss": _filled(history.loss, self.epochs),
            "epoch_accuracy": _filled(history.accuracy, self.epochs),
            "watched_accuracy": _filled(history.watched.get("accuracy", []), self._looks),
            "watched_loss": _filled(history.watched.get("loss", []), self._looks),
            "kept": outcome.kept,
        }
        if history.nonfinite_step >= 0:
            found = {name: np.full_like(np.asarray(one), np.nan) for name, one in found.items()}
        found["nonfinite_step"] = history.nonfinite_step
        return {name: np.asarray(values, dtype=np.float64) for name, values in found.items()}

    @property
    def _looks(self) -> int:
        return len(self.watched_epochs())


def _filled(values: list[float], length: int) -> list[float]:
    return values + [float("nan")] * (length - len(values))
