"""The classical transition between harmful and benign overfitting: two classes with noise of one
kind (003 footnote 2 and Remark 5)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rarefy.core.contracts import Cells, Context, Cost
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, Positive
from rarefy.studies.benign.setting import Schedule
from rarefy.studies.benign.strength import StrengthExperiment
from rarefy.sweep.batches import split_by_axes


@dataclass(frozen=True, kw_only=True)
class HomogeneousExperiment(StrengthExperiment):
    """The boundary |u|^4 ~ d/n of benign overfitting, measured."""

    axes: ClassVar[tuple[str, ...]] = ("schedule", "dimension", "size", "strength")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"seeds": 2, "dimension": (20, 40), "size": (4, 10), "strength": (0.5, 1.5, 4.0)}
        | {"filters": 8, "trained_steps": 120, "test_samples": 300},
        "quick": {"seeds": 6, "dimension": (100, 200, 400), "size": (5, 10, 20, 40)}
        | {"strength": (0.6, 0.9, 1.2, 1.6, 2.1, 2.8, 4.0)}
        | {"filters": 20, "test_samples": 3000},
        "paper": {},
    }

    schedule: tuple[Schedule, ...] = ("trained", "carried on")
    classes: Annotated[int, AtLeast(2)] = 2
    base: Positive = 1.0
    dimension: tuple[Count, ...] = (250, 500, 1000)
    """coordinates of a patch (in place of d)"""
    strength: tuple[Positive, ...] = tuple(round(0.5 * 1.25**i, 2) for i in range(12))
    test_samples: Count = 10_000

    @property
    def setting(self) -> str:
        return f"K={self.classes} m={self.filters} {self.combine}"

    def check(self) -> None:
        super().check()
        for dimension in self.dimension:
            if dimension < 2 * self.classes:
                least = f"must be at least {2 * self.classes}, twice the number of classes"
                raise bad_value("dimension", dimension, least)

    def parts(self) -> tuple[HomogeneousExperiment, ...]:
        return tuple(self.at_dimension(dimension) for dimension in self.dimension)

    def cost(self) -> Cost:
        samples = self.classes * max(self.size)
        costs = [part.cost_of(samples, self.trained_steps) for part in self.parts()]
        return max(costs, key=lambda cost: cost.bytes_per_cell)

    def at_dimension(self, dimension: int) -> HomogeneousExperiment:
        """The same study with patches of one length."""
        return dataclasses.replace(self, d=int(dimension))

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def run(seed: int, dimension: int, part: Cells) -> dict[str, np.ndarray]:
            study = self.at_dimension(dimension)
            return study.train_and_test(part, study.spectrum(1.0), context)

        return split_by_axes(cells, ("seed", "dimension"), run)
