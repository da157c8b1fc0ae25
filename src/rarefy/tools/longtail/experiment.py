"""Pre-training on long-tailed images: the grid, one training per cell, its measures. ``rarefy
pretrain`` runs it, and so does the study of 000 Table 2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import OneOf, Rule, Whole
from rarefy.core.text import file_name
from rarefy.data.longtail.order import pair_of
from rarefy.measure.representation.linear_probe import STRENGTHS
from rarefy.nets.builder import identity
from rarefy.sweep.one_by_one import one_by_one, spread_epochs
from rarefy.tools.image_data import data_identity, on_device
from rarefy.tools.longtail.evaluation import PROTOCOLS, Evaluation, Quality
from rarefy.tools.longtail.pretraining import PretrainResult, PretrainTask, pretrain_one
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL
from rarefy.tools.longtail.sets import AS_IS, Tail, read_split
from rarefy.tools.longtail.watching import Look
from rarefy.train.recipe import Recipe
from rarefy.train.simclr.harmonising import check_targets
from rarefy.train.simclr.method import Method
from rarefy.train.views.views import Views

IMAGES = (LONG_TAIL, BALANCED)
CROP = Rule("must be a share of the image (0: the usual one)", lambda value: 0 <= value <= 1)
MOST_EPOCHS = 200
"""Epochs of which loss and its companions are kept: results stay small."""
CELL_BYTES = 3_000_000_000
"""A set of 60,000 images with an epoch of views, and a network beside it."""

SMALLEST: dict[str, Any] = {
    "seeds": 2,
    "network": "lenet",
    "head": "24",
    "epochs": 2,
    "batch": 32,
    "learning_rate": 0.05,
    "protocols": ("linear",),
    "strengths": (0.01,),
    "evaluations": 1,
}
"""What makes any of these experiments a matter of seconds."""


@dataclass(frozen=True, kw_only=True)
class LongTailPretraining(Experiment):
    """Encoders trained without labels on long-tailed images and on the balanced control of equal
    size. All cells of a seed have one order of classes, the same first weights, the same images in
    the same order and the same views, so that methods can be compared in pairs; seeds come in
    mirrored pairs, in which head and tail classes change places."""

    axes: ClassVar[tuple[str, ...]] = ("images", "rho", "algorithm")
    renamed: ClassVar[dict[str, str]] = {"way": "algorithm", "watched": "evaluations"}
    one_at_a_time: ClassVar[bool] = True
    look: ClassVar[Look | None] = None
    """What is seen at a look on the way; None: the usual."""

    seeds: int = 4
    data: str = "digits"
    """image set: digits, mnist, cifar10, cifar100, or a folder of class folders"""
    network: str = "cnn"
    """lenet, cnn, resnet9, resnet18, vit, or module:callable"""
    algorithm: tuple[str, ...] = ("simclr", "pruned:0.7", "branches:0.1")
    """simclr, pruned:KEEP (000 Algorithm 1), branches:KEEP, sdclr; words after a + change them;
    pixels and untrained are what features are worth without any training"""
    images: tuple[Annotated[str, OneOf(IMAGES)], ...] = IMAGES
    """the long-tailed set, and its control: as many images, the same number of each class"""
    rho: tuple[float, ...] = (100.0,)
    """images of the largest class over those of the smallest"""
    split: str = "exponential"
    """exponential, step, pareto, as-is (all images as they are) or a split file"""
    orders: tuple[int, ...] = ()
    """which order of the classes each seed has; without any, the order of its own number"""
    head: str = "full"
    """images of the largest class: full, sdclr (a tenth less) or a number"""
    epochs: int = 500
    """times that every image is shown"""
    batch: int = 512
    """images per update"""
    learning_rate: float = 0.5
    """largest learning rate"""
    weight_decay: float = 1e-4
    """of matrices and kernels"""
    warm_up: float = 0.02
    """share of the training over which the rate rises"""
    temperature: float = 0.2
    """tau of the loss"""
    head_depth: int = 2
    """layers of the projection, thrown away afterwards"""
    head_out: int = 128
    """numbers that the projection gives"""
    crop: Annotated[float, CROP] = 0.0
    """least share of an image that a view shows; 0: the usual one for such images"""
    protocols: tuple[str, ...] = tuple(PROTOCOLS)
    """how features are judged: linear, long-tail, few, knn"""
    shots: int = 10
    """labels per class of the protocol few"""
    strengths: tuple[float, ...] = STRENGTHS
    """of a probe's regularisation, of which one is chosen on held-out training images"""
    evaluations: Whole = 10
    """how often features are looked at on the way, for the curves"""
    precision: str = "auto"
    """auto (bf16 on a GPU), bf16 or float32"""
    compile: bool = False
    """compile the network; pays for large ones on a GPU"""

    def check(self) -> None:
        for method in self.algorithm:
            check_targets(Method.parse(method), self.head_out)
        if len(self.rho) > 1 and (self.split == AS_IS or Tail(self.split).from_file):
            raise bad_value("rho", self.rho, "means nothing where images are taken as they are")
        if self.orders and len(self.orders) < self.seeds:
            raise bad_value("orders", self.orders, f"must name one for each of {self.seeds} seeds")
        for rho in self.rho:
            self._task(LONG_TAIL, rho)

    def task(self, images: str, rho: float) -> PretrainTask:
        return self._task(images, rho, self._views() if self.crop else None)

    def _task(self, images: str, rho: float, views: Views | None = None) -> PretrainTask:
        """``views`` apart: they ask for the images, which a reader of results may not have."""
        return PretrainTask(
            data=self.data,
            network=self.network,
            recipe=Recipe(
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                weight_decay=self.weight_decay,
                warm_up=self.warm_up,
            ),
            tail=Tail(self.split, float(rho), self.head, images == BALANCED),
            views=views,
            batch=self.batch,
            temperature=self.temperature,
            head_depth=self.head_depth,
            head_out=self.head_out,
            evaluation=Evaluation(self.protocols, self.shots, strengths=self.strengths),
            watched=tuple(self.watched_epochs().tolist()),
            precision=self.precision,
            compiled=self.compile,
            look=type(self).look,
        )

    def tasks(self) -> list[PretrainTask]:
        """All that it trains, without methods and seeds."""
        return [self.task(images, rho) for rho in self.rho for images in self.images]

    def _views(self) -> Views:
        channels, size, _ = on_device(self.data, torch.device("cpu")).shape
        return replace(Views.default(channels, size), scale=(self.crop, 1.0))

    def order_seed(self, seed: int) -> int:
        """Which order of the classes (and which images) a seed has."""
        return self.orders[seed] if self.orders else seed

    def pairs(self, seeds: Iterable[int]) -> list[int]:
        """A number per seed, the same for two orders of classes that are mirror images (there
        are none where no order is drawn)."""
        drawn = self.split != AS_IS and not Tail(self.split).from_file
        return [pair_of(self.order_seed(int(seed))) if drawn else int(seed) for seed in seeds]

    def watched_epochs(self) -> np.ndarray:
        """Evenly spread, with the last one."""
        return spread_epochs(self.epochs, self.evaluations)

    @property
    def setting(self) -> str:
        return f"{self.data}, {self.network}, {self.epochs} epochs"

    def inputs(self) -> dict[str, str]:
        own = identity(self.network)
        found = {"data": data_identity(self.data), **({"network": own} if own else {})}
        if Tail(self.split).from_file:
            pool = on_device(self.data, torch.device("cpu")).train
            found["split"] = read_split(self.split, pool).fingerprint
        return found

    # -------------------------------------------------------------------------------------- outputs

    def outputs(self) -> tuple[Output, ...]:
        by_rank = ("protocol", "rank")
        return (
            Output("accuracy", by_rank, "share of the class's test images classified right"),
            Output("masked_accuracy", by_rank, "the same of the masked network"),
            Output("validation", ("protocol",), "best balanced accuracy on held-out images"),
            Output("masked_validation", ("protocol",), "the same of the masked network"),
            Output("class_at", ("rank",), "label of the class, the head's first"),
            Output("class_count", ("rank",), "its images in the pre-training"),
            Output("epoch_loss", ("epoch",), "contrastive loss while the epoch ran"),
            Output("epoch_alignment", ("epoch",), "squared distance of two views of an image"),
            Output("epoch_uniformity", ("epoch",), "log mean exp(-2 |a - b|^2) of two images"),
            Output("epoch_churn", ("epoch",), "share of the mask that changed when last chosen"),
            Output("watched_knn", ("watched_epoch",), "accuracy of neighbours, held-out images"),
            Output("separability", ("watched_epoch", "rank"), "nearer to the own class's mean"),
            Output("mask_excess", ("rank",), "masked share of units that prefer it, over chance"),
            Output("mask_low", ("rank",), "of chance, the lower end of 95 %"),
            Output("mask_high", ("rank",), "of chance, the upper end"),
            Output("mask_units", ("rank",), "units that prefer the class"),
            Output("mask_slope", (), "correlation of rank and excess; positive: tail masked more"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {
            "protocol": np.array(self.protocols),
            "rank": np.arange(self._classes()),
            "epoch": self._kept_epochs(),
            "watched_epoch": self.watched_epochs(),
        }

    def _kept_epochs(self) -> np.ndarray:
        """Of the curves; evenly spread, with the last one."""
        return spread_epochs(self.epochs, MOST_EPOCHS)

    def _classes(self) -> int:
        """Of a set that is known, without having it."""
        known = {"digits": 10, "mnist": 10, "cifar10": 10, "cifar100": 100}
        if self.data in known:
            return known[self.data]
        return len(on_device(self.data, torch.device("cpu")).classes)

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=CELL_BYTES, steps_per_cell=self.epochs)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return one_by_one(cells, lambda cell, key: self._train(cell, key, context))

    def _train(self, cell: Mapping[str, Any], key: int, context: Context) -> dict[str, np.ndarray]:
        method, images = str(cell["algorithm"]), str(cell["images"])
        task = self.task(images, float(cell["rho"]))
        name = self.run_name(method, images, float(cell["rho"]), int(cell["seed"]))
        order = self.order_seed(int(cell["seed"]))
        found = pretrain_one(task, Method.parse(method), key, order, context, name)
        return self._measured(found)

    def run_name(self, method: str, images: str, rho: float, seed: int) -> str:
        """Of its file of weights, and in messages."""
        tail = Tail(self.split)
        kind = f"{images}-rho-{rho:g}"
        if tail.from_file:
            kind = f"{images}-{Path(self.split).stem}"
        elif self.split == AS_IS:
            kind = AS_IS
        words = f"{Path(self.data).name}-{self.network}-{method}-{kind}"
        return f"{file_name(words)}-seed-{seed}"

    def network_names(self) -> list[str]:
        return [
            self.run_name(method, images, rho, seed)
            for seed in range(self.seeds)
            for method in self.algorithm
            for images in self.images
            for rho in self.rho
        ]

    def _measured(self, found: PretrainResult) -> dict[str, np.ndarray]:
        ranks = self._classes()
        parts, seen, inside = found.parts, found.history, found.mechanism
        watched = len(self.watched_epochs())
        nothing: tuple[float, ...] = ()
        return {
            "accuracy": self._by_protocol(found.quality, ranks),
            "masked_accuracy": self._by_protocol(found.masked_quality, ranks),
            "validation": self._held_out(found.quality),
            "masked_validation": self._held_out(found.masked_quality),
            "class_at": filled(parts.order, ranks),
            "class_count": filled(parts.counts, ranks),
            "epoch_loss": self._curve(seen.loss),
            "epoch_alignment": self._curve(seen.alignment),
            "epoch_uniformity": self._curve(seen.uniformity),
            "epoch_churn": self._curve(seen.churn),
            "watched_knn": filled(seen.watched.get("knn", ()), watched),
            "separability": by_look(
                seen.watched.get("separability", ()), len(parts.order), (watched, ranks)
            ),
            "mask_excess": filled(nothing if inside is None else inside.excess, ranks),
            "mask_low": filled(nothing if inside is None else inside.low, ranks),
            "mask_high": filled(nothing if inside is None else inside.high, ranks),
            "mask_units": filled(nothing if inside is None else inside.units, ranks),
            "mask_slope": np.array(np.nan if inside is None else inside.slope),
            "nonfinite_step": np.array(seen.nonfinite_step),
        }

    def _curve(self, values: list[float]) -> np.ndarray:
        return filled(values, self.epochs)[self._kept_epochs() - 1]

    def _held_out(self, quality: Quality | None) -> np.ndarray:
        seen = {} if quality is None else quality.validation
        return np.array([seen.get(name, np.nan) for name in self.protocols])

    def _by_protocol(self, quality: Quality | None, ranks: int) -> np.ndarray:
        if quality is None:
            return np.full((len(self.protocols), ranks), np.nan)
        return np.stack([filled(quality.accuracy[name], ranks) for name in self.protocols])


def by_look(values: Any, each: int, shape: tuple[int, int]) -> np.ndarray:
    """(look, rank, say) of what a watcher wrote one look after the other, ``each`` numbers at a
    time; NaN for what is not there."""
    looks = np.asarray(values, dtype=np.float64).reshape(-1, each)
    found = np.full(shape, np.nan)
    found[: len(looks), :each] = looks[: len(found), : shape[1]]
    return found


def filled(values: Any, count: int) -> np.ndarray:
    """Behind what is there, NaN: a run that blew up has less to tell, a split may lack classes."""
    found = np.full(count, np.nan)
    given = np.asarray(values, dtype=np.float64)[:count]
    found[: len(given)] = given
    return found
