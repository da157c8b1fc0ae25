"""Do real classes have noise of their own? Class covariances of images (003 Fig. 6, Fig. 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.parameters import AtLeast, Rule
from rarefy.core.rng import Draws
from rarefy.sweep.one_by_one import one_by_one
from rarefy.tools.influence.class_noise import (
    RESIDUALS,
    accuracies_of_residuals,
    halves,
    overlaps_of,
    spread_out,
)
from rarefy.tools.influence.drawn_parts import (
    check_sets,
    drawn_order,
    identities,
    most_classes,
    training_part,
)

POINTS = Rule("must be at least 50, or there is nothing to map", lambda value: value >= 50)
CELL_BYTES = 3_000_000_000
"""Scatter matrices of ten classes of CIFAR-10, twice, and room to work."""


@dataclass(frozen=True, kw_only=True)
class CovarianceExperiment(Experiment):
    """Fig. 6 without the bias of its diagonal, and Fig. 1's shapes put as a question that can be
    answered wrongly."""

    axes: ClassVar[tuple[str, ...]] = ("data",)
    one_at_a_time: ClassVar[bool] = True
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "data": ("digits",),
            "seeds": 3,
            "components": 20,
            "points": 200,
            "map_steps": 500,
        },
        "quick": {"data": ("digits",), "seeds": 10, "components": 20, "points": 700},
        "paper": {},
    }

    seeds: int = 10
    data: tuple[str, ...] = ("mnist", "cifar10")
    """image sets by name; their training parts are used"""
    components: Annotated[int, AtLeast(2)] = 50
    """leading directions of within-class variation in which residuals are classified"""
    points: Annotated[int, POINTS] = 1000
    """samples on the t-SNE, which the first seed draws"""
    map_steps: Annotated[int, AtLeast(250)] = 1000
    """its iterations"""

    def check(self) -> None:
        check_sets(self.data)

    def inputs(self) -> dict[str, str]:
        return identities(self.data)

    def outputs(self) -> tuple[Output, ...]:
        pair = ("class_a", "class_b")
        return (
            Output("overlaps", pair, "tr(S_a S_b), both covariances from one half of the set"),
            Output("across", pair, "tr(S_a S_b), one covariance from each quarter of the set"),
            Output("told", ("residual",), "held-out residuals classified right, mean over classes"),
            Output("points_at", ("point", "coordinate"), "t-SNE; first seed only"),
            Output("points_class", ("point",), "class of a point"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        count = most_classes(self.data)
        return {
            "class_a": np.arange(count),
            "class_b": np.arange(count),
            "residual": np.array(RESIDUALS),
            "point": np.arange(self.points),
            "coordinate": np.array(["x", "y"]),
        }

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=CELL_BYTES, steps_per_cell=1)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return one_by_one(cells, lambda cell, key: self._cell(cell, key, context.device), context)

    def _cell(
        self, cell: Mapping[str, Any], key: int, device: torch.device
    ) -> dict[str, np.ndarray]:
        name, seed, draws = str(cell["data"]), int(cell["seed"]), Draws([key])
        samples = training_part(name)
        first = halves(draws, samples.labels)
        own, across = overlaps_of(samples, first, draws, device)
        told = accuracies_of_residuals(samples, first, self.components, draws, device)
        most = most_classes(self.data)
        found = {
            "overlaps": np.full((most, most), np.nan),
            "across": np.full((most, most), np.nan),
            "told": np.array([told[name] for name in RESIDUALS]),
            "points_at": np.full((self.points, 2), np.nan),
            "points_class": np.full(self.points, np.nan),
        }
        here = slice(0, len(samples.classes))
        found["overlaps"][here, here], found["across"][here, here] = own, across
        if seed == 0:
            rows = drawn_order(draws, "points", len(samples))[: self.points]
            found["points_at"][: len(rows)] = spread_out(
                samples, rows, self.components, self.map_steps
            )
            found["points_class"][: len(rows)] = samples.labels[rows]
        return found
