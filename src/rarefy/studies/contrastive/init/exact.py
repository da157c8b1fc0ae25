"""Counts of ``contrast-init`` over the orders of the papers, and their exact laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.studies.kit.arrays import by_seed
from rarefy.theory import initial_sets as theory

FAR = 8192
"""Features for which the exact laws are computed where no network that wide is drawn."""
CHANCE = 0.95
"""How "with high probability" is read."""


def rows(values: xr.DataArray, d: int) -> np.ndarray:
    """(seed, ratio) array of one quantity at one d."""
    return values.sel(d=d).transpose("seed", "ratio").values


def expected(experiment: InitExperiment, quantity: str, d: int, ratio: float) -> float:
    """What a count is on average, exactly."""
    chance = {"ordinary": theory.ordinary_probability, "lucky": theory.lucky_probability}
    return experiment.neurons(d) * chance[quantity](d, ratio, experiment.gamma)


def width_needed(experiment: InitExperiment, d: int, ratio: float) -> float:
    """Neurons with which every feature has a lucky one with high probability."""
    return theory.minimum_width(theory.lucky_probability(d, ratio, experiment.gamma), d, CHANCE)


def exact_over(experiment: InitExperiment, d: int, ratio: float) -> float:
    """Exact mean |M*_j| over Xi_1; the width cancels."""
    steps = theory.proof_steps(d, ratio, experiment.gamma)
    return steps.lucky / steps.high_order


def lucky_order(experiment: InitExperiment, d: int, ratio: float) -> float:
    """Xi_1 of (31)."""
    return float(theory.xi_1_order(experiment.neurons(d), d, ratio, experiment.gamma))


def lucky_over(
    experiment: InitExperiment, results: xr.Dataset, ratio: float, features: Sequence[int]
) -> np.ndarray:
    """(seed, d): mean |M*_j| counted over Xi_1."""
    counted = by_seed(results["lucky"].sel(ratio=ratio, d=list(features)), "d")
    return counted / [lucky_order(experiment, d, ratio) for d in features]


class Upper(NamedTuple):
    """An O(.) statement: a counted quantity, its order, and the ids of its two readings."""

    quantity: str
    what: str
    order: Callable[[int, float], float]
    """(d, ratio) -> what stands inside O(.)"""
    constant: str = "C9"
    shape: str | None = None
    note: str = ""

    def over(self, experiment: InitExperiment, results: xr.Dataset, ratio: float) -> np.ndarray:
        """(seed, d): the counted quantity over its order, d rising."""
        features = sorted(experiment.d)
        counted = by_seed(results[self.quantity].sel(ratio=ratio, d=features), "d")
        return counted / [self.order(d, ratio) for d in features]


def upper_bounds(experiment: InitExperiment) -> list[Upper]:
    gamma = experiment.gamma
    farther = theory.expected_largest_set(FAR, 1.0, experiment.neurons(FAR), gamma)
    return [
        Upper(
            "ordinary_most",
            "largest |M_j| over Xi_2 (31)",
            lambda d, r: float(theory.xi_2_order(experiment.neurons(d), d, r, gamma)),
            "C9.2",
            "C9",
        ),
        Upper(
            "carried_most",
            "largest |N_i| over d^(1-r^2) (Lemma B.2 d)",
            lambda d, r: float(theory.set_size_order(d, r, gamma)),
            "C9.3",
            "C9",
            "balanced, the largest of m is of order log m/log log m, which no constant bounds: "
            f"exactly {farther:.3g} at d={FAR}",
        ),
        Upper(
            "carried_most",
            "workshop paper: largest |N_i|, O(1) in Lemma C.1 (f)",
            lambda d, r: 1.0,
            note="its mean alone is about d^(1-r^2), which no constant bounds when r < 1",
        ),
        Upper(
            "shared_most",
            "workshop paper: largest |M_j and M_j'| over log d (23)",
            lambda d, r: math.log(d),
            note="its mean is about d^(C_m-2r^2), a power of d unless r^2 >= C_m/2",
        ),
    ]
