"""The classical transition between harmful and benign overfitting: two classes with noise of one
kind (003 footnote 2 and Remark 5)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Verdict
from rarefy.core.errors import bad_value
from rarefy.core.picture import Picture, Table
from rarefy.data.noise_spectrum import Spectrum, special_spectrum
from rarefy.studies._apart import simulate_apart
from rarefy.studies.benign._homogeneous_pictures import (
    homogeneous_pictures,
    homogeneous_tables,
)
from rarefy.studies.benign._homogeneous_verdicts import homogeneous_verdicts
from rarefy.studies.benign._strength import StrengthStudy


@dataclass(frozen=True, kw_only=True)
class BenignHomogeneous(StrengthStudy):
    """The boundary |u|^4 ~ d/n of benign overfitting, measured."""

    name: ClassVar[str] = "benign-homogeneous"
    title: ClassVar[str] = "Noise of one kind: where harmful overfitting turns benign"
    paper_says: ClassVar[str] = (
        "With two classes whose noise covers all directions but the features' alike, the model of "
        "003 is the usual one of features and noise (footnote 2), and Theorem 1, 2(a) has the "
        "order known from Kou et al. 2023 (Remark 5): the test error is small where n |u|^4 is "
        "large against sigma^4 d and above a constant where it is small, so that the |u| at which "
        "it changes goes like (d/n)^(1/4). The theorem speaks of networks trained to a small "
        "loss ('trained', our choice of training); the printed 20 steps are run beside them."
    )
    claims: ClassVar[tuple[str, ...]] = ("B15",)
    axes: ClassVar[tuple[str, ...]] = ("schedule", "dimension", "size", "strength")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (half a minute; an hour on two cores)"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "dimension": (20, 40),
            "size": (4, 10),
            "strength": (0.5, 1.5, 4.0),
            "filters": 8,
            "trained_steps": 120,
            "test_samples": 300,
        },
        "quick": {
            "seeds": 6,
            "dimension": (100, 200, 400),
            "size": (5, 10, 20, 40),
            "strength": (0.6, 0.9, 1.2, 1.6, 2.1, 2.8, 4.0),
            "filters": 20,
            "trained_steps": 250,
            "test_samples": 3000,
        },
        "paper": {"seeds": 6},
    }

    classes: int = 2
    base: float = 1.0
    dimension: tuple[int, ...] = (250, 500, 1000)
    """coordinates of a patch (in place of d)"""
    size: tuple[int, ...] = (10, 20, 50, 100)
    strength: tuple[float, ...] = tuple(round(0.5 * 1.2**i, 2) for i in range(16))
    test_samples: int = 20_000
    seeds: int = 10

    @property
    def setting(self) -> str:
        return f"K={self.classes} m={self.filters} {self.combine}"

    def check(self) -> None:
        super().check()
        for dimension in self.dimension:
            if dimension < 2 * self.classes:
                least = f"must be at least {2 * self.classes}, twice the number of classes"
                raise bad_value("dimension", dimension, least)

    def parts(self) -> tuple[BenignHomogeneous, ...]:
        return tuple(self.at_dimension(dimension) for dimension in self.dimension)

    def spectrum(self) -> Spectrum:
        """``base`` off the features."""
        return special_spectrum(self.base, self.d, self.classes, self.base)

    def cost(self) -> Cost:
        samples = self.classes * max(self.size)
        costs = [part.cost_of(samples, self.trained_steps) for part in self.parts()]
        return max(costs, key=lambda cost: cost.bytes_per_cell)

    def at_dimension(self, dimension: int) -> BenignHomogeneous:
        """The same study with patches of one length."""
        return dataclasses.replace(self, d=int(dimension))

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def of_dimension(dimension: int, part: Cells) -> dict[str, np.ndarray]:
            study = self.at_dimension(dimension)
            return study.train_and_test(part, study.spectrum(), context)

        return simulate_apart(
            cells, "seed", lambda seed, those: simulate_apart(those, "dimension", of_dimension)
        )

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return homogeneous_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return homogeneous_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return homogeneous_tables(self, results)
