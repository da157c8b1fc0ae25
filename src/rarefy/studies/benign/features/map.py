"""One map of ``benign-features`` as arrays: errors over class size and feature strength, with the
ratio of Theorem 1, 2(a) beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from rarefy.measure.separation import COUNTED, Array, Mask, crossing, mean_error, measured_cells
from rarefy.studies.benign.constants import READ, untrained
from rarefy.studies.benign.features.experiment import FeaturesExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.theory import benign

ROUNDING = 1e-9
"""A ratio meant to be 1 may be 1.0000000002."""


@dataclass(frozen=True)
class FeatureMap:
    """Of one schedule and one Gamma. error, train_loss: (seed, size, strength); gram:
    |A_k^T A_j|_F^2, (class, class)."""

    study: FeaturesExperiment
    schedule: str
    gamma: float
    size: Array
    strength: Array
    error: Array
    train_loss: Array
    gram: Array

    @property
    def classes(self) -> int:
        return self.study.classes

    @property
    def accuracy(self) -> Array:
        return 1 - self.error

    @property
    def ratio(self) -> Array:
        """x = |S_k|^2 |u_k|^4/(|S_j| |A_k^T A_j|_F^2), alike for all k != j: (size, strength)."""
        sizes, norms = self._alike()
        return benign.binding(benign.signal_ratio(self.gram, sizes, norms))[..., 0]

    def mean_error(self) -> Array:
        """Over seeds: (size, strength)."""
        return mean_error(self.error, self.study.test_samples)

    def measured(self, least: float) -> Mask:
        """Cells from which laws in x are read, x from ``least`` on."""
        return measured_cells(self.error, self.ratio, self.study.test_samples, least)

    def counted(self, least: float) -> Mask:
        """Cells from ``least`` on whose errors can be counted, also those beyond the cut of
        ``measured``: a bound is to lie above them all."""
        seen = np.nan_to_num(self.error).sum(axis=0) * self.study.test_samples
        return np.asarray((self.ratio >= least) & (seen >= COUNTED))

    def largest_constant(self, error: Array, there: Mask) -> Array:
        """The largest c_1 with error <= (K - 1) exp(-c_1 x) in the cells that are ``there``; error:
        (..., seed, size, strength)."""
        mean = mean_error(error, self.study.test_samples, axis=-3)[..., there]
        constants = np.log((self.classes - 1) / mean) / self.ratio[there]
        return np.asarray(constants.min(axis=-1, initial=np.inf))

    def harmful(self, limit: float) -> Mask:
        """Cells of which statement 3 speaks with C_3 = ``limit``: (size, strength)."""
        sizes, norms = self._alike()
        # C_1 and C_2 lie above C_3: a cell at the limit itself belongs to statement 3
        above, limit = READ.features * limit, limit * (1 + ROUNDING)
        regime = benign.regime(self.gram, sizes, norms, above, above, limit)
        return np.asarray((regime == "harmful").all(axis=-1))

    def untrained(self, region: Mask) -> str:
        """Why Theorem 1 says nothing of a region."""
        return untrained(self.study, self.train_loss[:, region], "there ")

    def crossing(self, level: float) -> Array:
        """|u| at which the mean error falls below ``level``: (size,), NaN where it does not."""
        return crossing(self.strength, self.mean_error(), level, self.classes)

    def ratio_at(self, strength: Array) -> Array:
        """x of one strength per size: (size,)."""
        return self.size * strength**4 / self.gram[0, 1]

    def _alike(self) -> tuple[Array, Array]:
        """Sizes (size, 1, class) and norms (1, strength, class) of classes that are all alike."""
        ones = np.ones(self.classes)
        return self.size[:, None, None] * ones, self.strength[None, :, None] * ones


def maps_of(study: FeaturesExperiment, results: xr.Dataset) -> list[FeatureMap]:
    """Every map of the results, schedule by schedule."""
    axes = ("size", "strength")
    ordered = results.sortby(list(axes))
    found = []
    for schedule in texts(results, "schedule"):
        for gamma in results["gamma"].values.tolist():
            here = ordered.sel(schedule=schedule, gamma=gamma)
            size, strength = (here[name].values.astype(np.float64) for name in axes)
            error, loss = (by_seed(here[name], *axes) for name in ("test_error", "train_loss"))
            gram = study.spectrum(gamma).gram()[0].numpy()
            at = (study, schedule, gamma, size, strength)
            found.append(FeatureMap(*at, error, loss, gram))
    return found
