"""What 003 Theorem 1 says of each cell of a map: its two ratios, its regime, its bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from scipy import special

from rarefy.studies.benign.constants import READ, Constants
from rarefy.studies.benign.correlation.experiment import CorrelationExperiment
from rarefy.theory import benign
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

Array = np.ndarray


@dataclass(frozen=True)
class Prediction:
    """Theorem 1 over a map with axes (strength, gamma). All classes are alike: it is told of one.

    gram: |A_k^T A_j|_F^2, (1, gamma, classes, classes); sizes: (classes,); norms: |u_k|, (strength,
    1, classes).
    """

    gram: Array
    sizes: Array
    norms: Array

    @classmethod
    def of(cls, study: CorrelationExperiment, strength: Array, gamma: Array) -> Prediction:
        table = study.spectrum(torch.tensor(gamma, dtype=torch.float64)).gram().numpy()[None]
        sizes = np.full(study.classes, study.size)
        return cls(table, sizes, np.repeat(strength[:, None, None], study.classes, axis=2))

    def regime(self, constants: Constants = READ) -> Array:
        """ "features", "tail", "open" or "harmful"."""
        limits = (constants.features, constants.tail, constants.harmful)
        return np.asarray(benign.regime(self.gram, self.sizes, self.norms, *limits)[..., 0])

    def feature_bound(self, constants: Constants = READ) -> Array:
        """2(a): error on all data."""
        ratio = benign.signal_ratio(self.gram, self.sizes, self.norms)
        return np.asarray(np.exp(-benign.exponent(ratio, constants.c_1)[..., 0]))

    def tail_bound(self, lengths: Array, constants: Constants = READ) -> Array:
        """2(b): error on L-long-tailed data, (1, gamma, length)."""
        ratio = benign.noise_correlation_ratio(self.gram, self.sizes)[..., None, :, :]
        return np.asarray(np.exp(-benign.tail_exponent(ratio, lengths, constants.c_2)[..., 0]))

    def harmful_error(self, constants: Constants = READ) -> float:
        """3: error at least this."""
        return constants.harmful_error(len(self.sizes))


def least_error(
    study: CorrelationExperiment, gamma: Array, law: str = "gaussian", length: Array | float = 0.0
) -> Array:
    """The best that can be done by noise alone (``rarefy.theory.class_noise_bayes``)."""
    ratio = special_ratio(gamma, study.d - study.classes)
    kind = "uniform" if law == "uniform-own" else "gaussian"
    return least_noise_error(ratio, study.classes, kind, length)


def tail_errors(strata: xr.DataArray) -> xr.DataArray:
    """Error given |zeta| >= L from the errors between L and the next edge, for every edge L: the
    strata weighted as likely as they are under the normal law."""
    edges = strata["edge"].values
    beyond = special.erfc(edges / np.sqrt(2))
    chance = xr.DataArray(beyond - np.append(beyond[1:], 0.0), {"edge": edges}, ("edge",))
    weighted = (strata * chance).isel({"edge": slice(None, None, -1)})
    total = weighted.cumsum("edge").isel({"edge": slice(None, None, -1)})
    total = total / xr.DataArray(beyond, dims=("edge",))
    known = strata.notnull().all("edge")
    return total.where(known).assign_coords({"edge": edges})
