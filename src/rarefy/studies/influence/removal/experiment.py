"""What leaving out high, low or random scores does to test accuracy (003 Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated, Any, ClassVar

import numpy as np

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Rule
from rarefy.nets.builder import identity
from rarefy.studies.influence.removal.data import Source, parts_of
from rarefy.studies.influence.removal.training import (
    FULL,
    LOGISTIC,
    Removal,
    RemovalResult,
    train_without,
)
from rarefy.sweep.cached import cached_npz, hash_of
from rarefy.sweep.one_by_one import one_by_one
from rarefy.tools.sparse_training import Task
from rarefy.train.image_batches import Augmentation
from rarefy.train.recipe import Recipe

CELL_BYTES = 2_000_000_000
TAIL = Rule("must be above 0 and below 1", lambda value: 0 < value < 1)


@dataclass(frozen=True, kw_only=True)
class RemovalExperiment(Experiment):
    """Fig. 7 with the controls it lacks: random removal, plainer scores, several seeds, and the
    same share from every class beside the paper's sorting of the whole set."""

    axes: ClassVar[tuple[str, ...]] = ("within", "by", "fraction")
    one_at_a_time: ClassVar[bool] = True
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "data": "digits",
            "network": LOGISTIC,
            "seeds": 3,
            "by": ("high", "low", "random"),
            "within": ("class",),
            "fraction": (0.0, 0.5),
            "subsample": 0.5,
        },
        "quick": {
            "data": "digits",
            "network": LOGISTIC,
            "seeds": 10,
            "fraction": (0.0, 0.1, 0.3, 0.5, 0.7),
            "subsample": 0.9,
        },
        "paper": {"by": ("high", "low", "random"), "seeds": 10},
        "cifar10": {
            "data": "cifar10",
            "network": "resnet18",
            "by": ("high", "low"),
            "within": ("all",),
            "fraction": (0.0, 0.1, 0.3, 0.5),
            "seeds": 5,
            "epochs": 15,
            "learning_rate": 0.4,
            "warm_up": 0.2,
            "shift": 4,
            "flip": True,
            "compile": True,
        },
    }

    seeds: int = 3
    data: str = "mnist"
    """image set by name, a folder of class folders, a table or an array file"""
    label: str = ""
    """of a table: the column with the classes"""
    labels: str = ""
    """of a .npy file: the file with its labels"""
    columns: str = ""
    """of a table: its feature columns, separated by commas; all numeric ones if empty"""
    network: str = "lenet"
    """logistic (anything), or on images lenet, cnn, resnet9, resnet18, vit, module:callable"""
    by: tuple[str, ...] = ("high", "low", "random", "distance", "mahalanobis")
    """high or low influence, random, distance, mahalanobis, norm, disagreement (each also -low)"""
    within: tuple[str, ...] = ("class", "all")
    """the same share of every class, or the highest of the whole set"""
    fraction: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.5)
    """shares of the training samples that are left out; 0 is all of them"""
    subsample: float = 1.0
    """share of the training samples that a seed draws before anything is left out"""
    tail_share: Annotated[float, TAIL] = 0.1
    """share of each class's test samples that counts as its tail"""
    epochs: int = 10
    """times that every image is shown"""
    batch: int = 512
    """images per update"""
    learning_rate: float = 0.02
    """largest learning rate; from 0.05 on some LeNets stay at the loss of guessing"""
    weight_decay: float = 5e-4
    """of matrices and kernels"""
    warm_up: float = 0.1
    """share of the training over which the rate rises"""
    shift: int = 0
    """pixels by which training images are moved at random"""
    flip: bool = False
    """training images are mirrored half the time"""
    compile: bool = False
    """compile the network; pays for large ones on a GPU"""

    @property
    def setting(self) -> str:
        return f"{self.data}, {self.network}"

    def check(self) -> None:
        for by in self.by:
            if by in FULL:
                raise bad_value("by", by, f"is called {FULL[by]} here")
        if 0.0 not in self.fraction:
            raise bad_value("fraction", self.fraction, "must have 0, all samples, to compare with")
        for by, within, fraction in product(self.by, self.within, self.fraction):
            Removal(by, fraction, within, self.subsample)
        self.task()

    def source(self) -> Source:
        return Source(self.data, self.label, self.labels, self.columns)

    def task(self) -> Task:
        recipe = Recipe(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            warm_up=self.warm_up,
        )
        changes = Augmentation(self.shift, self.flip, 0.0, True)
        return Task(
            self.data, self.network, recipe, changes, batch=self.batch, compiled=self.compile
        )

    def inputs(self) -> dict[str, str]:
        parts = parts_of(self.source())
        own = "" if self.network == LOGISTIC else identity(self.network)
        seen = f"{parts.train.name} ({parts.train.fingerprint}, {parts.test.fingerprint})"
        return {"data": seen, **({"network": own} if own else {})}

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_accuracy", (), "share of test samples classified right"),
            Output("tail_accuracy", (), "the same of the tail of the test set"),
            Output("far_accuracy", (), "the same of those farthest from their class mean"),
            Output("rest_accuracy", (), "the same of those in neither"),
            Output("trained", (), "training samples that were left"),
            Output("smallest", (), "share that the class with the largest loss has left"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=CELL_BYTES, steps_per_cell=self.epochs)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return one_by_one(cells, lambda cell, key: self._cell(cell, key, context))

    def _cell(self, cell: Mapping[str, Any], key: int, context: Context) -> dict[str, np.ndarray]:
        fraction = float(cell["fraction"])
        removal = Removal(str(cell["by"]), fraction, str(cell["within"]), self.subsample)
        name = f"{removal.by}-{fraction:g}-{removal.within}-seed-{cell['seed']}"
        train = partial(
            train_without,
            removal,
            self.source(),
            self.task(),
            key,
            context,
            self.tail_share,
            name,
        )
        if fraction or context.scratch is None or len(self.by) * len(self.within) == 1:
            return _numbers(train())
        # with nothing left out all ways to choose are one
        return cached_npz(
            context.scratch / f"all-{hash_of(key, self.task(), self.subsample)}.npz",
            lambda: _numbers(train()),
            context.advance,
            self.epochs,
        )


def _numbers(after: RemovalResult) -> dict[str, np.ndarray]:
    found = {
        "test_accuracy": after.test,
        "tail_accuracy": after.tail,
        "far_accuracy": after.far,
        "rest_accuracy": after.rest,
        "trained": after.trained,
        "smallest": after.smallest,
        "nonfinite_step": after.nonfinite_step,
    }
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}
