"""From samples to estimates with intervals.

Arrays are laid out ``(samples, points)``: a sample is one seed or cell, a point one value of the
axis a claim is about. A value that is not finite is missing, never zero. Random resampling has its
own seeded generator, so the same results always give the same estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

SEED = 20240229
_CHUNK = 500_000  # numbers of resamples at a time; bounds memory, not the result


class Interval(NamedTuple):
    """A mean with its interval; ``n`` finite samples (NaN ends: fewer than two of them)."""

    mean: float
    low: float
    high: float
    n: int


class Band(NamedTuple):
    """``Interval`` for every point of an axis, ready to be drawn."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n: NDArray[np.int64]


def t_quantile(freedom: ArrayLike, level: float = 0.95) -> NDArray[np.float64]:
    """Half width of a Student-t interval in standard errors. (``scipy.stats.t.ppf`` calls the same
    function, after checks that take a hundred times as long.)"""
    return np.asarray(special.stdtrit(freedom, (1 + level) / 2))


def mean_band(samples: ArrayLike, axis: int = 0, level: float = 0.95, fewest: int = 2) -> Band:
    """Mean and Student-t interval along ``axis``, missing values left out; ``fewest``: samples from
    which there is an interval."""
    values = np.asarray(samples, dtype=np.float64)
    there = np.isfinite(values)
    n = there.sum(axis=axis)
    mean = finite_mean(values, axis)
    residual = np.where(there, values - np.expand_dims(mean, axis), 0.0)
    variance = (residual**2).sum(axis=axis) / np.maximum(n - 1, 1)
    half = t_quantile(np.maximum(n - 1, 1), level) * np.sqrt(variance / np.maximum(n, 1))
    half = np.where(n >= max(fewest, 2), half, np.nan)
    return Band(mean, mean - half, mean + half, n)


def finite_mean(values: ArrayLike, axis: int | None = 0) -> NDArray[np.float64]:
    """Mean of what is there; NaN, in silence, where nothing is."""
    there = np.isfinite(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def mean_interval(samples: ArrayLike, level: float = 0.95) -> Interval:
    """Mean and Student-t interval of all samples, whatever their shape."""
    band = mean_band(np.ravel(np.asarray(samples, dtype=np.float64)), 0, level)
    return Interval(float(band.mean), float(band.low), float(band.high), int(band.n))


def bootstrap_interval(
    samples: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = SEED,
) -> Interval:
    """Bootstrap over the first axis: ``statistic`` gets many resamples at once, (resample, ...),
    each laid out as ``samples``, and gives (resample,). A sample of which nothing is there is left
    out; other missing values are the statistic's own affair. ``Interval.mean`` is the statistic of
    the samples."""
    values = np.asarray(samples, dtype=np.float64)
    values = values[np.isfinite(values).any(axis=tuple(range(1, values.ndim)))]
    n = len(values)
    if n == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    value = float(statistic(values[None])[0])
    if n == 1:
        return Interval(value, np.nan, np.nan, 1)
    drawn, place = _resamples(n, resamples, seed)
    step = max(1, _CHUNK // values.size)
    parts = [statistic(values[drawn[at : at + step]]) for at in range(0, len(drawn), step)]
    return Interval(value, *bootstrap_ends(value, np.concatenate(parts)[place], level, n), n)


@lru_cache(maxsize=32)
def _resamples(n: int, resamples: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Resamples that differ, and which of them each is: samples have no order, so that of few
    samples few differ."""
    drawn = np.sort(np.random.default_rng(seed).integers(0, n, (resamples, n)), axis=1)
    different, place = np.unique(drawn, axis=0, return_inverse=True)
    return different, place.ravel()


def wilson_interval(successes: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of a proportion that stays sensible near 0 and 1 (Wilson 1927)."""
    if total == 0:
        return (np.nan, np.nan)
    z = special.ndtri((1 + level) / 2)
    share, weight = successes / total, z**2 / total
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * np.sqrt(share * (1 - share) / total + weight / (4 * total))
    return (max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def bootstrap_ends(
    value: float, replicas: NDArray[np.float64], level: float, n: int
) -> tuple[float, float]:
    """Interval from bootstrap replicas of a statistic whose value is ``value``.

    Percentiles, their tails thinned because plain ones are too narrow for few samples: by
    sqrt((n-1)/n) and by normal against Student quantiles (Hesterberg 2015, section 3.1). Even the
    range of all replicas covers at most 1 - 2^(1-n), so that under six samples (at 95 %) the
    interval is Student's with the bootstrap's standard error.
    """
    replicas = replicas[np.isfinite(replicas)]
    if n < 2 or len(replicas) == 0:
        return (np.nan, np.nan)
    quantile = t_quantile(n - 1, level) * np.sqrt(n / (n - 1))
    if 2.0 ** (1 - n) > 1 - level:
        half = float(quantile * replicas.std())
        return (value - half, value + half)
    tail = special.ndtr(-quantile)
    low, high = np.quantile(replicas, [tail, 1 - tail])
    return (float(low), float(high))
