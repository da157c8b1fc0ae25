"""From samples to estimates with intervals.

Arrays are laid out ``(samples, points)``: a sample is one seed or cell, a point one value of the
axis a claim is about. A value that is not finite is missing, never zero. Random resampling has its
own seeded generator, so the same results always give the same estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rarefy.core.errors import bad_value

SEED = 20240229
_CHUNK = 4_000_000  # numbers drawn at a time; bounds memory, not the result's meaning


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


@dataclass(frozen=True)
class Slope:
    """A fitted slope with its bootstrap interval, and how much data carried it."""

    value: float
    low: float
    high: float
    n_samples: int
    n_points: int


@dataclass(frozen=True)
class LinearFit:
    """mean_y = intercept + slope x. ``r_squared`` is that of the means, not of single samples."""

    slope: float
    intercept: float
    r_squared: float
    slope_interval: tuple[float, float]
    intercept_interval: tuple[float, float]
    n_samples: int
    n_points: int

    @property
    def as_slope(self) -> Slope:
        """The slope alone, as the judges take it."""
        return Slope(self.slope, *self.slope_interval, self.n_samples, self.n_points)


@dataclass(frozen=True)
class Trend:
    """Spearman's rho over all values, two-sided permutation p-value, rho of the means, n and an
    interval of rho. Where every value is drawn afresh, n counts values and the interval is that of
    Bonett and Wright (2000); where a row shares draws, n counts rows, which are bootstrapped."""

    rho: float
    p_value: float
    rho_of_means: float
    n: int
    low: float = float("nan")
    high: float = float("nan")


def mean_band(samples: ArrayLike, axis: int = 0, level: float = 0.95) -> Band:
    """Mean and Student-t interval along ``axis``, missing values left out."""
    values = np.asarray(samples, dtype=np.float64)
    there = np.isfinite(values)
    n = there.sum(axis=axis)
    filled = np.where(there, values, 0.0)
    mean = np.where(n > 0, filled.sum(axis=axis) / np.maximum(n, 1), np.nan)
    residual = np.where(there, values - np.expand_dims(mean, axis), 0.0)
    variance = (residual**2).sum(axis=axis) / np.maximum(n - 1, 1)
    half = stats.t.ppf((1 + level) / 2, np.maximum(n - 1, 1)) * np.sqrt(variance / np.maximum(n, 1))
    half = np.where(n > 1, half, np.nan)
    return Band(mean, mean - half, mean + half, n)


def mean_interval(samples: ArrayLike, level: float = 0.95) -> Interval:
    """Mean and Student-t interval of all samples, whatever their shape."""
    band = mean_band(np.ravel(np.asarray(samples, dtype=np.float64)), 0, level)
    return Interval(float(band.mean), float(band.low), float(band.high), int(band.n))


def bootstrap_interval(
    samples: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], float],
    level: float = 0.95,
    resamples: int = 2000,
    axis: int = 0,
    seed: int = SEED,
) -> Interval:
    """Bootstrap over ``axis``: ``statistic`` gets an array laid out as ``samples``,
    whose missing values are its own affair. ``Interval.mean`` is the statistic of the samples."""
    values = np.asarray(samples, dtype=np.float64)
    n = values.shape[axis]
    if n == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    generator = np.random.default_rng(seed)
    replicas = [
        statistic(np.asarray(values.take(generator.integers(0, n, n), axis=axis)))
        for _ in range(resamples if n > 1 else 0)
    ]
    value = float(statistic(values))
    return Interval(value, *_bootstrap_ends(value, np.asarray(replicas), level, n), n)


def loglog_slope(
    x: ArrayLike, y: ArrayLike, level: float = 0.95, resamples: int = 2000, seed: int = SEED
) -> Slope:
    """Slope of log mean_y against log x; x (points,), y (samples, points).

    Points whose mean is not positive have no logarithm: they are dropped, and ``n_points`` says
    how many were used.
    """
    x, y = _laid_out(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_x = np.log(x)
    fits, n_samples, n_points = _bootstrap_fits(log_x, y, resamples, seed, logarithm=True)
    value = float(fits[0, 0])
    ends = _bootstrap_ends(value, fits[1:, 0], level, n_samples)
    return Slope(value, *ends, n_samples, n_points)


def linear_slope(
    x: ArrayLike, y: ArrayLike, level: float = 0.95, resamples: int = 2000, seed: int = SEED
) -> LinearFit:
    """Least squares of mean_y on x with intercept; x (points,), y (samples, points)."""
    x, y = _laid_out(x, y)
    fits, n_samples, n_points = _bootstrap_fits(x, y, resamples, seed, logarithm=False)
    slope, intercept, r_squared = (float(value) for value in fits[0])
    return LinearFit(
        slope,
        intercept,
        r_squared,
        _bootstrap_ends(slope, fits[1:, 0], level, n_samples),
        _bootstrap_ends(intercept, fits[1:, 1], level, n_samples),
        n_samples,
        n_points,
    )


def spearman_trend(
    x: ArrayLike,
    y: ArrayLike,
    permutations: int = 9999,
    within_rows: bool = False,
    seed: int = SEED,
) -> Trend:
    """Does y grow or fall with x? x (points,), y (samples, points).

    Under the null the x labels can be exchanged: among all values when every cell draws afresh,
    only inside a row (``within_rows``) when the cells of one seed share draws.
    """
    x, y = _laid_out(x, y)
    there = np.isfinite(y) & np.isfinite(x)
    n = int(there.sum())
    count = int(there.any(axis=1).sum()) if within_rows else n
    wide = np.broadcast_to(x, y.shape)
    x_rank, y_rank = _unit_ranks(wide[there]), _unit_ranks(y[there])
    if x_rank is None or y_rank is None:
        return Trend(np.nan, np.nan, np.nan, count)
    rho = float(x_rank @ y_rank)
    # rows with equally many values are permuted together, so that a missing value costs its own
    # row one label and nothing else
    row = np.nonzero(there)[0] if within_rows else np.zeros(n, dtype=np.int64)
    in_row = np.bincount(row)[row]
    blocks = [
        (x_rank[in_row == each].reshape(-1, each), y_rank[in_row == each])
        for each in np.unique(in_row)
    ]
    generator = np.random.default_rng(seed)
    as_extreme = 0
    for size in _chunks(permutations, n):
        product = np.zeros(size)
        for labels, ranks in blocks:
            many = np.broadcast_to(labels, (size, *labels.shape))
            product += generator.permuted(many, axis=-1).reshape(size, -1) @ ranks
        as_extreme += int((np.abs(product) >= abs(rho) - 1e-12).sum())
    means = mean_band(np.where(there, y, np.nan)).mean
    seen = np.isfinite(means)
    x_mean, y_mean = _unit_ranks(x[seen]), _unit_ranks(means[seen])
    rho_of_means = np.nan if x_mean is None or y_mean is None else float(x_mean @ y_mean)
    ends = (
        _rho_of_rows(rho, wide, y, generator, min(permutations, 999))
        if within_rows
        else _rho_of_values(rho, n)
    )
    p_value = (1 + as_extreme) / (1 + permutations)
    return Trend(rho, p_value, rho_of_means, count, *ends)


def _rho_of_values(rho: float, n: int) -> tuple[float, float]:
    half = 1.96 * np.sqrt((1 + rho**2 / 2) / (n - 3)) if n > 3 else np.inf
    centre = np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    return float(np.tanh(centre - half)), float(np.tanh(centre + half))


def _rho_of_rows(
    rho: float,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    generator: np.random.Generator,
    resamples: int,
) -> tuple[float, float]:
    there = np.isfinite(y) & np.isfinite(x)
    some = there.any(axis=1)
    x, y = np.where(there, x, np.nan)[some], np.where(there, y, np.nan)[some]
    n = len(y)
    replicas = []
    for size in _chunks(resamples if n > 1 else 0, y.size):
        drawn = generator.integers(0, n, (size, n))
        both = (_unit_ranks_of_rows(each[drawn].reshape(size, -1)) for each in (x, y))
        replicas.append(np.einsum("ij,ij->i", *both))
    found = np.concatenate(replicas) if replicas else np.empty(0)
    low, high = _bootstrap_ends(rho, found, 0.95, n)
    return max(-1.0, low), min(1.0, high)


def _unit_ranks_of_rows(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """As ``_unit_ranks``, each row by itself: 0 where a value is missing, NaN where there is
    nothing to rank."""
    ranks = np.asarray(stats.rankdata(values, axis=1, nan_policy="omit"))
    there = np.isfinite(values)
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    ranks = np.where(there, ranks, 0.0)
    ranks = np.where(there, ranks - ranks.sum(axis=1, keepdims=True) / count, 0.0)
    length = np.linalg.norm(ranks, axis=1, keepdims=True)
    return ranks / np.where(length > 0, length, np.nan)


def wilson_interval(successes: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of a proportion that stays sensible near 0 and 1 (Wilson 1927)."""
    if total == 0:
        return (np.nan, np.nan)
    z = stats.norm.ppf((1 + level) / 2)
    share, weight = successes / total, z**2 / total
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * np.sqrt(share * (1 - share) / total + weight / (4 * total))
    return (max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def _laid_out(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points = np.asarray(x, dtype=np.float64)
    values = np.atleast_2d(np.asarray(y, dtype=np.float64))
    if points.ndim != 1 or values.ndim != 2 or values.shape[1] != len(points):
        raise bad_value("y", values.shape, f"its shape must be (samples, {points.size})")
    return points, values


def _bootstrap_fits(
    x: NDArray[np.float64], y: NDArray[np.float64], resamples: int, seed: int, logarithm: bool
) -> tuple[NDArray[np.float64], int, int]:
    """Rows (slope, intercept, r squared): the samples' own fit, then one a resample.

    A resample is a vector of how often each sample was drawn, so that all its point means are
    one matrix product.
    """
    there = np.isfinite(y) & np.isfinite(x)
    rows = there.any(axis=1)
    y, there = y[rows], there[rows]
    n = len(y)
    filled, weight = np.where(there, y, 0.0), there.astype(np.float64)
    generator = np.random.default_rng(seed)

    def means(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (counts @ filled) / (counts @ weight)
            return np.log(np.where(mean > 0, mean, np.nan)) if logarithm else mean

    own = means(np.ones((1, n)))
    used = np.isfinite(own[0])
    fits = [_fit(x, own)]
    for size in _chunks(resamples if n > 1 else 0, n):
        drawn = means(generator.multinomial(n, np.full(n, 1 / n), size).astype(np.float64))
        fits.append(_fit(x, np.where(used, drawn, np.nan)))
    return np.concatenate(fits), n, int(used.sum())


def _fit(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares of every row of y (rows, points) on x over its finite points."""
    there = np.isfinite(y) & np.isfinite(x)
    n = np.maximum(there.sum(axis=1, keepdims=True), 1)
    x, y = np.where(there, x, 0.0), np.where(there, y, 0.0)
    x_mean, y_mean = x.sum(axis=1, keepdims=True) / n, y.sum(axis=1, keepdims=True) / n
    dx, dy = np.where(there, x - x_mean, 0.0), np.where(there, y - y_mean, 0.0)
    xx, xy, yy = (dx * dx).sum(axis=1), (dx * dy).sum(axis=1), (dy * dy).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # one point, or all at one x: 0/0, no slope
        slope = np.where(xx > 0, xy / xx, np.nan)
        r_squared = np.where(yy > 0, xy**2 / (xx * yy), np.nan)
    return np.stack([slope, y_mean[:, 0] - slope * x_mean[:, 0], r_squared], axis=1)


def _bootstrap_ends(
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
    quantile = stats.t.ppf((1 + level) / 2, n - 1) * np.sqrt(n / (n - 1))
    if 2.0 ** (1 - n) > 1 - level:
        half = float(quantile * replicas.std())
        return (value - half, value + half)
    tail = stats.norm.cdf(-quantile)
    low, high = np.quantile(replicas, [tail, 1 - tail])
    return (float(low), float(high))


def _unit_ranks(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Centred ranks of length one, ties shared; None when there is nothing to rank."""
    if len(values) < 2:
        return None
    ranks = stats.rankdata(values)
    ranks = ranks - ranks.mean()
    length = float(np.linalg.norm(ranks))
    return ranks / length if length > 0 else None


def _chunks(total: int, width: int) -> Iterator[int]:
    step = max(1, _CHUNK // max(width, 1))
    for start in range(0, total, step):
        yield min(step, total - start)
