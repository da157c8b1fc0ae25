"""Pre-training with labels of many granularities, beside each other: the grid, one transfer per
cell, its measures. ``rarefy granularity`` runs it, and so do the studies of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, Rule, Whole
from rarefy.data.hierarchy.levels import CLASS, level_of, levels_identity
from rarefy.data.hierarchy.made import check_spec, kind_of
from rarefy.data.hierarchy.reading import with_hierarchy
from rarefy.data.images.ids import short_hash
from rarefy.nets.builder import identity
from rarefy.sweep.one_by_one import one_by_one, spread_epochs
from rarefy.tools.granularity.evaluation import worst_subclasses
from rarefy.tools.granularity.reference import (
    PIXELS,
    Diverged,
    check_features,
    clustering_features,
    hard_images,
)
from rarefy.tools.granularity.sets import (
    GIVEN,
    ONCE,
    TARGET,
    Source,
    TransferSets,
    check_labels,
    data_of,
    load_sets,
    pretraining_labels,
    wants_features,
)
from rarefy.tools.granularity.transfer import (
    Transferred,
    TransferTask,
    transfer,
)
from rarefy.tools.image_data import data_identity, on_device
from rarefy.tools.sparse_training import Task, own_random_state
from rarefy.train.image_batches import Augmentation
from rarefy.train.recipe import Recipe

CELL_BYTES = 2_000_000_000
SHARE = Rule("must be above 0 and at most 1", lambda value: 0 < value <= 1)
HELD_OUT = Rule("must be above 0 and at most 0.5", lambda value: 0 < value <= 0.5)


@dataclass(frozen=True, kw_only=True)
class GranularityExperiment(Experiment):
    """Networks pre-trained on the labels of a level, then fine-tuned and probed on the target. All
    cells of a seed begin with the same weights and see the same images in the same order, so that
    levels can be compared in pairs; all have the same number of updates."""

    name: ClassVar[str] = "granularity-images"
    title: ClassVar[str] = "Your own images: how fine should the labels of pre-training be?"
    axes: ClassVar[tuple[str, ...]] = ("labels",)
    one_at_a_time: ClassVar[bool] = True
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "network": "lenet",
            "labels": (TARGET, ONCE, CLASS, "kmeans-within:2", "random:4"),
            "features": PIXELS,
            "epochs": 2,
            "tune_epochs": 2,
            "looks": 2,
            "samples": 80,
            "test_samples": 100,
            "batch": 16,
        },
        "quick": {},
        "paper": {"seeds": 10},
    }

    seeds: Count = 5
    data: str = "digits"
    """image set: digits, mnist, cifar10, cifar100, or a folder of class folders"""
    hierarchy: str = ""
    """file with the parents of its classes; empty: what the set itself has"""
    target: str = "parity"
    """level that is asked for in the end"""
    target_data: str = ""
    """another set to transfer to; empty: the same"""
    labels: tuple[str, ...] = (TARGET, ONCE, CLASS, "kmeans-within:2", "random:10")
    """what is pre-trained on: target (re-training), once (one pass), a level of the set, or made:
    kmeans-within:K, rebalanced:K, kmeans:K, random-within:K, random:K, samples"""
    features: str = TARGET
    """what is clustered: target (of a network trained on it), pixels, an embedding (.npy) or a
    backbone of rarefy pretrain (.pt)"""
    network: str = "cnn"
    """lenet, cnn, resnet9, resnet18, vit, or module:callable"""
    epochs: Count = 20
    """of pre-training"""
    tune_epochs: Count = 10
    """of fine-tuning"""
    checkpoints: tuple[Annotated[float, SHARE], ...] = (1.0,)
    """shares of the pre-training after which a copy is fine-tuned and probed"""
    looks: Count = 2
    """how often a fine-tuning is evaluated on its way"""
    held_out: Annotated[float, HELD_OUT] = 0.1
    """share of the training images by which everything is chosen"""
    judged: bool = False
    """train judges that say which test images are hard"""
    batch: Count = 64
    """images per update"""
    optimizer: str = "sgd"
    """sgd (Nesterov momentum) or adamw"""
    learning_rate: float = 0.05
    """largest learning rate of pre-training"""
    tune_rate: float = 0.01
    """largest learning rate of fine-tuning"""
    weight_decay: float = 5e-4
    """of matrices and kernels"""
    warm_up: float = 0.1
    """share of a training over which the rate rises"""
    shift: Whole = 0
    """pixels by which training images are moved at random"""
    flip: bool = False
    """training images are mirrored half the time"""
    samples: Whole = 0
    """training images used, 0: all"""
    test_samples: Whole = 0
    """test images used, 0: all"""
    precision: str = "auto"
    """auto (bf16 on a GPU), bf16 or float32"""
    compile: bool = False
    """compile the network; pays for large ones on a GPU"""

    @property
    def setting(self) -> str:
        asked = f"{self.target_data or self.data}, {self.target}"
        return f"{self.data} to {asked}, {self.network}" if self.target_data else asked

    def check(self) -> None:
        for labels in self.labels:
            if labels not in (TARGET, ONCE) and kind_of(labels) != GIVEN:
                check_spec(labels)
        if TARGET not in self.labels:
            raise bad_value("labels", self.labels, f"must have {TARGET!r}, to compare with")
        if 1.0 not in self.checkpoints or list(self.checkpoints) != sorted(set(self.checkpoints)):
            raise bad_value("checkpoints", self.checkpoints, "must rise and end with 1")
        self.task()

    def source(self) -> Source:
        return Source(
            self.data,
            self.hierarchy,
            self.target,
            self.target_data,
            self.samples,
            self.test_samples,
            self.held_out,
        )

    def task(self) -> TransferTask:
        recipe, tuning = (
            Recipe(
                epochs=epochs,
                optimizer=self.optimizer,
                learning_rate=rate,
                weight_decay=self.weight_decay,
                warm_up=self.warm_up,
            )
            for epochs, rate in (
                (self.epochs, self.learning_rate),
                (self.tune_epochs, self.tune_rate),
            )
        )
        changes = Augmentation(self.shift, self.flip)
        pretraining = Task(
            self.data,
            self.network,
            recipe,
            changes,
            batch=self.batch,
            precision=self.precision,
            compiled=self.compile,
        )
        shown = self.coordinates()
        return TransferTask(
            pretraining, tuning, tuple(shown["checkpoint"].tolist()), tuple(shown["tuned"].tolist())
        )

    def inputs(self) -> dict[str, str]:
        """Labels that the set cannot have are found here, before anything is written."""
        here = torch.device("cpu")
        sets = load_sets(self.source(), here)
        for labels in self.labels:
            check_labels(labels, sets)
        if any(map(wants_features, self.labels)):
            check_features(self.features, self.source())
        found = {
            "data": data_identity(self.data),
            "levels": levels_identity(data_of(self.source(), here)),
        }
        if self.target_data:
            asked = with_hierarchy(on_device(self.target_data, here))
            found["target_data"] = f"{data_identity(self.target_data)}, {levels_identity(asked)}"
        if Path(self.features).suffix and Path(self.features).is_file():
            found["features"] = short_hash([Path(self.features).read_bytes().hex()])
        own = identity(self.network)
        return {**found, **({"network": own} if own else {})}

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("held_out_accuracy", ("checkpoint", "tuned"), "fine-tuned, held-out images"),
            Output("test_accuracy", ("checkpoint", "tuned"), "fine-tuned, test images"),
            Output("probe_held_out", ("checkpoint",), "linear probe, held-out images"),
            Output("probe_accuracy", ("checkpoint",), "linear probe, test images"),
            Output("pretrain_loss", ("epoch",), "training loss while the epoch ran"),
            Output("pretrain_accuracy", ("epoch",), "training accuracy while it ran"),
            Output("pretrained_accuracy", (), "test images, after pre-training on the target"),
            Output("classes", (), "labels that were pre-trained on"),
            Output("smallest", (), "images with the rarest of them"),
            Output("agreement", (), "share of images that lie in their label's target class"),
            Output("worst_subclass", (), "finished network, worst subclass of the target"),
            Output("worst_tenth", (), "the same, mean over the worst tenth of the subclasses"),
            Output("hard_accuracy", (), "test images that only a judge of fine labels gets right"),
            Output("mirror_accuracy", (), "those that only a judge of target labels gets right"),
            Output("other_accuracy", (), "the same, on which both are right or both wrong"),
            Output("hard_share", (), "share of the test images of the first kind"),
            Output("mirror_share", (), "share of those of the second kind"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        """At which networks are looked at; no images are needed to tell."""
        ends = [max(1, round(share * self.epochs)) for share in self.checkpoints]
        return {
            "checkpoint": np.unique(ends),
            "tuned": spread_epochs(self.tune_epochs, self.looks),
            "epoch": np.arange(1, self.epochs + 1),
        }

    def cost(self) -> Cost:
        tuned = len(self.coordinates()["checkpoint"]) * self.tune_epochs
        return Cost(bytes_per_cell=CELL_BYTES, steps_per_cell=self.epochs + tuned)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return one_by_one(cells, lambda cell, key: self._transfer(cell, key, context))

    def _transfer(
        self, cell: Mapping[str, Any], run_key: int, context: Context
    ) -> dict[str, np.ndarray]:
        which, seed = str(cell["labels"]), int(cell["seed"])
        source, task = self.source(), self.task()
        sets = load_sets(source, context.device)
        features = None
        if wants_features(which):
            try:
                features = clustering_features(self.features, source, task, run_key, context)
            except Diverged as error:
                context.advance(self.cost().steps_per_cell)
                return self._measured({}, error.step)
        labels = pretraining_labels(which, sets, features, seed)
        with own_random_state(run_key, context.device):
            done = transfer(task, which, sets, labels, run_key, context, f"{which}, seed {seed}")
        found = self._accuracies(done)
        found |= {"classes": labels.classes, "smallest": labels.smallest}
        found["agreement"] = labels.agreement
        if done.right is not None and done.nonfinite_step < 0:
            found |= self._further(done, sets)
            subclasses = sets.subclasses()
            if subclasses is not None:
                asked = level_of(sets.test, subclasses)[0]
                found |= dict(
                    zip(
                        ("worst_subclass", "worst_tenth"),
                        worst_subclasses(done.right, asked),
                        strict=True,
                    )
                )
            if self.judged:
                images = hard_images(source, task, run_key, context)
                right = done.right.cpu().numpy()
                found |= {
                    "hard_accuracy": _mean(right[images.hard]),
                    "mirror_accuracy": _mean(right[images.mirror]),
                    "other_accuracy": _mean(right[~images.hard & ~images.mirror]),
                    "hard_share": images.hard.mean(),
                    "mirror_share": images.mirror.mean(),
                }
        return self._measured(found, done.nonfinite_step)

    def _further(self, done: Transferred, sets: TransferSets) -> dict[str, Any]:
        """What an experiment with more outputs asks of the finished network."""
        return {}

    def _measured(self, found: Mapping[str, Any], nonfinite_step: int) -> dict[str, np.ndarray]:
        shapes = {name: len(values) for name, values in self.coordinates().items()}
        return {
            one.name: _filled(found.get(one.name), tuple(shapes[dim] for dim in one.dims))
            for one in self.outputs()
        } | {"nonfinite_step": np.asarray(nonfinite_step, dtype=np.float64)}

    def _accuracies(self, done: Transferred) -> dict[str, Any]:
        seen = done.pretraining
        found: dict[str, Any] = {
            # one pass is longer than the others' pre-training
            "pretrain_loss": seen.loss[: self.epochs],
            "pretrain_accuracy": seen.accuracy[: self.epochs],
        }
        if done.nonfinite_step < 0:
            found |= {
                "held_out_accuracy": done.held_out,
                "test_accuracy": done.test,
                "probe_held_out": done.probe_held_out,
                "probe_accuracy": done.probe_test,
                "pretrained_accuracy": done.pretrained_test,
            }
        return found


def _mean(right: np.ndarray) -> float:
    """NaN where there is no such image."""
    return float(right.mean()) if len(right) else float("nan")


def _filled(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """NaN where nothing was measured."""
    whole = np.full(shape, np.nan)
    if values is not None:
        found = np.asarray(values, dtype=np.float64)
        whole[tuple(slice(0, length) for length in found.shape)] = found
    return whole
