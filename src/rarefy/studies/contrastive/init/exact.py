"""What ``contrast-init`` expects exactly, and the upper bounds it holds that and the counts to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.studies.kit.arrays import by_seed
from rarefy.theory import initial_sets as theory

CHANCE = 0.95
"""How "with high probability" is read."""
MANY = (1024, 2048, 4096, 8192)
"""Features for which the exact laws are computed where no network that wide is drawn."""


def rows(values: xr.DataArray, d: int) -> np.ndarray:
    """(seed, ratio) array of one quantity at one d."""
    return values.sel(d=d).transpose("seed", "ratio").values


def expected(experiment: InitExperiment, quantity: str, d: int, ratio: float) -> float:
    """What a count is on average, exactly."""
    m, gamma = experiment.neurons(d), experiment.gamma
    by_quantity: dict[str, Callable[[], float]] = {
        "ordinary": lambda: m * theory.ordinary_probability(d, ratio, gamma),
        "lucky": lambda: m * theory.lucky_probability(d, ratio, gamma),
        "shared": lambda: m * theory.shared_probability(d, ratio, gamma),
        "carried_most": lambda: theory.expected_largest_set(d, ratio, m, gamma),
        "near_zero": lambda: d * theory.near_zero_probability(d),
        "near_zero_most": lambda: theory.expected_most_near_zero(d, m),
        "strong": lambda: d * theory.strong_probability(d),
        "strong_most": lambda: theory.expected_most_strong(d, m),
    }
    return by_quantity[quantity]()


def coverage(experiment: InitExperiment, d: int, ratio: float) -> float:
    """The chance that every feature has a lucky neuron."""
    chance = theory.lucky_probability(d, ratio, experiment.gamma)
    return theory.coverage_probability(chance, d, experiment.neurons(d))


def width_needed(experiment: InitExperiment, d: int, ratio: float) -> float:
    """Neurons with which every feature has a lucky one with high probability."""
    return theory.minimum_width(theory.lucky_probability(d, ratio, experiment.gamma), d, CHANCE)


def exact_slope(values: list[float], features: tuple[int, ...] = MANY) -> float:
    """Log-log slope in d; NaN where a value is too small for a float."""
    if min(values) <= 0:
        return math.nan
    return float(np.polyfit(np.log(features), np.log(values), 1)[0])


def exact_over(experiment: InitExperiment, d: int, ratio: float, power: float = 0.0) -> float:
    """Exact mean |M*_j| over Xi_1/log^power d; the width cancels."""
    steps = theory.proof_steps(d, ratio, experiment.gamma)
    return steps.lucky / steps.high_order * math.log(d) ** power


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
    """An O(.) statement: a counted quantity, its order, and what of it is known exactly."""

    quantity: str
    symbol: str
    over: str
    """the order in words, to follow the symbol"""
    order: Callable[[int, float], float]
    """(d, ratio) -> what stands inside O(.)"""
    note: str = ""
    known: str = ""
    """where the quantity's law is not known, its mean over sets, which it cannot be below"""
    known_symbol: str = ""
    by_ratio: bool = True
    """whether quantity or order depend on the ratio"""

    @property
    def name(self) -> str:
        """Of the part that is known exactly."""
        return self.known_symbol or self.symbol

    def exact(self, experiment: InitExperiment, d: int, ratio: float) -> float:
        """The known part over the order."""
        known = self.known or self.quantity
        return expected(experiment, known, d, ratio) / self.order(d, ratio)


def upper_bounds(experiment: InitExperiment) -> list[Upper]:
    gamma = experiment.gamma
    near = ("near_zero_most", "largest |Lambda_i|", " over d/log d, 001 (22),")
    most = "most features above sigma_0 log^(1/4) d"
    strong = ("strong_most", most, " over 2^-sqrt(log d) d, 001 (24),")
    return [
        Upper(
            "ordinary_most",
            "largest |M_j|",
            " over Xi_2 (31),",
            lambda d, r: float(theory.xi_2_order(experiment.neurons(d), d, r, gamma)),
            known="ordinary",
            known_symbol="mean |M_j|",
        ),
        Upper(
            "carried_most",
            "largest |N_i|",
            " over d^(1-r^2), 000 Lemma B.2 (d),",
            lambda d, r: float(theory.set_size_order(d, r, gamma)),
            "|N_i| of one neuron is near Poisson for r close to 1, so the largest of m is of order "
            "log m/log log m there, which no constant bounds",
        ),
        Upper(
            "carried_most",
            "largest |N_i|",
            ", O(1) in 001 Lemma C.1 (f),",
            lambda d, r: 1.0,
            "its mean alone is d p_2, about d^(1-r^2), which no constant bounds when r < 1",
        ),
        Upper(
            "shared_most",
            "largest |M_j and M_j'|",
            " over log d, 001 (23),",
            lambda d, r: theory.shared_order(d),
            "its mean is about d^(C_m-2r^2), a power of d unless r^2 >= C_m/2",
            known="shared",
            known_symbol="mean |M_j and M_j'|",
        ),
        Upper(
            *near, lambda d, r: theory.near_zero_order(d), "polylog read as log d", by_ratio=False
        ),
        Upper(*strong, lambda d, r: theory.strong_order(d), "Omega read as 1", by_ratio=False),
    ]


def counted_over(
    experiment: InitExperiment, results: xr.Dataset, bound: Upper, ratio: float
) -> np.ndarray:
    """(seed, d): the counted quantity over its order, d rising."""
    features = sorted(experiment.d)
    counted = results[bound.quantity].sel(ratio=ratio, d=features).transpose("seed", "d").values
    order = [bound.order(d, ratio) for d in features]
    return counted / np.array(order, dtype=counted.dtype)  # the precision of the counts
