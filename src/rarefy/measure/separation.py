"""From an error to a distance in standard deviations, and how both scale with |S| and |u|.

Theorem 1, 2(a) bounds the error by (K - 1) exp(-c_1 x). Its proof (003 (125)) compares a feature
score with Gaussian-like noise scores, so the sharpest law it can stand for is that of K independent
normal scores of one variance, the right one shifted by ``separation``: the bound's exponent is then
separation^2/4. The error itself has a factor in front of its exponential: -log(error)/x falls with
x by that factor alone, however exactly separation^2 is proportional to x. So both are fitted.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rarefy.measure.estimates import Interval, bootstrap_interval, finite_mean

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
FARTHEST = 12.0
"""Separation up to which the law is tabulated; two classes err in 1e-17 of the cases there."""
COUNTED = 10
"""Errors, of all seeds together, from which a cell's error counts as measured; the error of so many
is known within a factor 2."""


@cache
def _table(classes: int) -> tuple[Array, Array]:
    """Separations and the logarithm of their errors, both rising in the error."""
    distance = np.linspace(FARTHEST, 0.0, 1201)
    score = np.linspace(-9.0, FARTHEST + 9.0, 4201)
    wrong = -np.expm1((classes - 1) * special.log_ndtr(score))
    density = np.exp(-((score - distance[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi)
    error = np.trapezoid(density * wrong, score, axis=1)
    return distance, np.log(error)


def separation(error: ArrayLike, classes: int) -> Array:
    """Shift, in standard deviations, with which the largest of ``classes`` normal scores is the
    wrong one with probability ``error``; 0 from chance on, NaN for no error at all."""
    distance, log_error = _table(classes)
    value = np.asarray(error, dtype=np.float64)
    known = np.where(value > 0, value, np.nan)
    return np.interp(np.log(known), log_error, distance)


def error_of(distance: ArrayLike, classes: int) -> Array:
    """The inverse of ``separation``."""
    far, log_error = _table(classes)
    return np.exp(np.interp(np.asarray(distance, dtype=np.float64), far[::-1], log_error[::-1]))


def crossing(strength: Array, error: Array, level: float, classes: int) -> Array:
    """First |u| at which ``error``, (..., strength), falls below ``level``: (...), NaN if it never
    does.

    Between two strengths the separation is taken as linear in |u|^2, to which theory has it
    proportional.
    """
    if len(strength) < 2:
        return np.full(error.shape[:-1], np.nan)
    falls = (error[..., :-1] >= level) & (error[..., 1:] < level)
    place = falls.argmax(axis=-1)[..., None]
    ends = np.concatenate([place, place + 1], axis=-1)
    left, right = np.moveaxis(separation(np.take_along_axis(error, ends, -1), classes), -1, 0)
    low, high = np.moveaxis(strength[ends] ** 2, -1, 0)
    wanted = float(separation(level, classes))
    crosses = falls.any(axis=-1)
    share = np.divide(wanted - left, right - left, out=np.zeros_like(left), where=crosses)
    return np.where(crosses, np.sqrt(low + share * (high - low)), np.nan)


def mean_error(error: Array, test_samples: int, axis: int = 0) -> Array:
    """Mean over seeds (an axis), of which no error at all counts as half of one: the resample of a
    bootstrap may have none where all seeds together have some."""
    seeds = np.maximum(np.isfinite(error).sum(axis=axis), 1)
    return np.asarray(np.maximum(finite_mean(error, axis), 0.5 / (seeds * test_samples)))


def measured_cells(error: Array, ratio: Array, test_samples: int, least: float = 1.0) -> Mask:
    """Cells from which laws in x = ``ratio`` are read: x at least ``least``, and below the first x
    at which some cell has too few errors to count. error: (seed, ...), ratio: (...).

    The cut is made in x: left out by their error, cells that happen to err little would be missing
    where x is large, and the fall would seem slower than it is.
    """
    tested = int(np.isfinite(error).sum(axis=0).max(initial=0)) * test_samples
    few = ~(np.nan_to_num(error).sum(axis=0) * test_samples >= COUNTED)
    beyond = float(ratio[few & (ratio >= least)].min(initial=np.inf))
    return np.asarray((ratio >= least) & (ratio < beyond) & (tested > 0))


# ------------------------------------------------------------------------------------- exponents


def exponents(
    error: Array, cells: Mask, kind: str, classes: int, test_samples: int, *regressors: Array
) -> tuple[Interval, ...]:
    """Exponents, in each of ``regressors`` (logarithms, shaped as the cells), of -log(error) (kind
    "log") or of the squared separation ("separation"), with bootstrap intervals over seeds.

    error: (seed, ...). Least squares with one intercept; NaN where the cells cannot tell the
    regressors apart.
    """
    inside = error[:, cells]
    design = np.stack([np.ones(cells.sum()), *(column[cells] for column in regressors)], axis=1)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return (Interval(np.nan, np.nan, np.nan, 0),) * len(regressors)
    solve = np.linalg.pinv(design)[1:]

    def fitted(sample: Array) -> Array:
        mean = mean_error(sample, test_samples, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = -np.log(mean) if kind == "log" else separation(mean, classes) ** 2
            return np.asarray(np.log(value) @ solve.T)

    def one(place: int) -> Interval:
        return bootstrap_interval(inside, lambda sample: fitted(sample)[:, place])

    return tuple(one(place) for place in range(len(regressors)))
