"""Errors in a tail by which others are measured: the right score leads by a |zeta| standard
deviations, so that a sample errs with probability chance * 2 Q(a |zeta|), zeta normal."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]


def log_error_law(a: Array, length: float, chance: float) -> Array:
    """log of chance * E[2 Q(a |zeta|) given |zeta| >= length], zeta normal."""
    step = 0.005
    z = length + step * (np.arange(1600) + 0.5)  # 8 stds further: nothing is left
    weight = special.log_softmax(-(z**2) / 2)
    inside = weight + np.log(2) + special.log_ndtr(-a[:, None] * z)
    return np.asarray(np.log(chance) + special.logsumexp(inside, axis=1))


@cache
def _law_table(length: float, chance: float) -> tuple[Array, Array]:
    a = np.geomspace(1e-3, 30, 600)
    return np.log(a), log_error_law(a, length, chance)


def strength(error: Array, length: Array, chance: float) -> Array:
    """The a at which the yardstick's error is ``error``, (cell,); next to 0 from chance on, so that
    cells where nothing is learnt count; NaN for no error."""
    found = np.full(len(error), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_error = np.log(error)
    for each in np.unique(length):
        log_a, law = _law_table(float(each), chance)
        here = (length == each) & (log_error >= law[-1])
        found[here] = np.exp(np.interp(-log_error[here], -law, log_a))
    return found
