"""How something changes along an axis: slopes and ranks, with intervals.

Laid out as in ``rarefy.measure.estimates``: x (points,), y (samples, points).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rarefy.core.errors import bad_value
from rarefy.measure.estimates import SEED, bootstrap_ends, mean_band
from rarefy.measure.shared_draws import drawn_once

_CHUNK = 4_000_000  # numbers drawn at a time; bounds memory, not the result's meaning


@dataclass(frozen=True)
class Slope:
    """A fitted slope with its bootstrap interval, and how much data carried it."""

    value: float
    low: float
    high: float
    n_samples: int
    n_points: int


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
    slopes, n_samples, n_points = _bootstrap_slopes(log_x, y, resamples, seed)
    value = float(slopes[0])
    ends = bootstrap_ends(value, slopes[1:], level, n_samples)
    return Slope(value, *ends, n_samples, n_points)


def spearman_rho(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho over all values that are there; x (points,), y (samples, points)."""
    x, y = _laid_out(x, y)
    there = np.isfinite(y) & np.isfinite(x)
    return _correlation(np.broadcast_to(x, y.shape)[there], y[there])


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
    rho = _correlation(wide[there], y[there])
    if not np.isfinite(rho):
        return Trend(np.nan, np.nan, np.nan, count)
    x_rank, y_rank = (_unit_ranks(each[there][None])[0] for each in (wide, y))
    # rows with equally many values are permuted together, so that a missing value costs its own
    # row one label and nothing else
    row = np.nonzero(there)[0] if within_rows else np.zeros(n, dtype=np.int64)
    in_row = np.bincount(row)[row]
    blocks = [
        (x_rank[in_row == each].reshape(-1, each), y_rank[in_row == each])
        for each in np.unique(in_row)
    ]
    exchanged, generator = _exchanged([labels for labels, _ in blocks], permutations, seed)
    as_extreme = 0
    for many in exchanged:
        product = sum(each @ ranks for each, (_, ranks) in zip(many, blocks, strict=True))
        as_extreme += int((np.abs(product) >= abs(rho) - 1e-12).sum())
    means = mean_band(np.where(there, y, np.nan)).mean
    seen = np.isfinite(means)
    rho_of_means = _correlation(x[seen], means[seen])
    ends = (
        _rho_of_rows(rho, wide, y, generator, min(permutations, 999))
        if within_rows
        else _rho_of_values(rho, n)
    )
    p_value = (1 + as_extreme) / (1 + permutations)
    return Trend(rho, p_value, rho_of_means, count, *ends)


_REMEMBERED = 12_000_000  # numbers


def _exchanged(
    blocks: list[NDArray[np.float64]], permutations: int, seed: int
) -> tuple[Iterable[list[NDArray[np.float64]]], np.random.Generator]:
    """Labels (row, label) of each block exchanged inside their rows, some permutations at a time:
    (permutation, row * label) each; and the generator, which is after them once they are used."""
    n = sum(labels.size for labels in blocks)

    def drawn(generator: np.random.Generator) -> Iterator[list[NDArray[np.float64]]]:
        for size in _chunks(permutations, n):
            many = (np.broadcast_to(labels, (size, *labels.shape)) for labels in blocks)
            yield [generator.permuted(each, axis=-1).reshape(size, -1) for each in many]

    if not 0 < n * permutations <= _REMEMBERED:
        generator = np.random.default_rng(seed)
        return drawn(generator), generator
    about = (permutations, *((each.shape, each.tobytes()) for each in blocks))
    return drawn_once("labels", about, seed, lambda generator: list(drawn(generator)))


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
        both = (_unit_ranks(each[drawn].reshape(size, -1)) for each in (x, y))
        replicas.append(np.einsum("ij,ij->i", *both))
    found = np.concatenate(replicas) if replicas else np.empty(0)
    low, high = bootstrap_ends(rho, found, 0.95, n)
    # rows drawn twice tie, which lifts rho near its largest value: the interval holds its estimate
    return max(-1.0, min(low, rho)), min(1.0, max(high, rho))


def _laid_out(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points = np.asarray(x, dtype=np.float64)
    values = np.atleast_2d(np.asarray(y, dtype=np.float64))
    if points.ndim != 1 or values.ndim != 2 or values.shape[1] != len(points):
        raise bad_value("y", values.shape, f"its shape must be (samples, {points.size})")
    return points, values


def _bootstrap_slopes(
    log_x: NDArray[np.float64], y: NDArray[np.float64], resamples: int, seed: int
) -> tuple[NDArray[np.float64], int, int]:
    """The slope of log mean_y of the samples themselves, then of each resample.

    A resample is a vector of how often each sample was drawn, so that all its point means are
    one matrix product.
    """
    there = np.isfinite(y) & np.isfinite(log_x)
    rows = there.any(axis=1)
    y, there = y[rows], there[rows]
    n = len(y)
    filled, weight = np.where(there, y, 0.0), there.astype(np.float64)
    generator = np.random.default_rng(seed)

    def means(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (counts @ filled) / (counts @ weight)
            return np.log(np.where(mean > 0, mean, np.nan))

    own = means(np.ones((1, n)))
    used = np.isfinite(own[0])
    slopes = [row_slopes(log_x, own)]
    for size in _chunks(resamples if n > 1 else 0, n):
        drawn = means(generator.multinomial(n, np.full(n, 1 / n), size).astype(np.float64))
        slopes.append(row_slopes(log_x, np.where(used, drawn, np.nan)))
    return np.concatenate(slopes), n, int(used.sum())


def row_slopes(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares of every row of y (rows, points) on x over its finite points; NaN where there
    is no slope, of one point or of all at one x."""
    there = np.isfinite(y) & np.isfinite(x)
    n = np.maximum(there.sum(axis=1, keepdims=True), 1)
    x, y = np.where(there, x, 0.0), np.where(there, y, 0.0)
    x_mean, y_mean = x.sum(axis=1, keepdims=True) / n, y.sum(axis=1, keepdims=True) / n
    dx, dy = np.where(there, x - x_mean, 0.0), np.where(there, y - y_mean, 0.0)
    xx, xy = (dx * dx).sum(axis=1), (dx * dy).sum(axis=1)
    return np.divide(xy, xx, out=np.full(len(xx), np.nan), where=xx > 0)


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Spearman's, of values that are all there; NaN where there is nothing to rank."""
    return float(_unit_ranks(x[None])[0] @ _unit_ranks(y[None])[0]) if len(x) > 1 else np.nan


def _unit_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centred ranks of length one of each row (rows, values), ties shared: 0 where a value is
    missing, NaN where there is nothing to rank."""
    there = np.isfinite(values)
    ranks = np.where(there, pd.DataFrame(values).rank(axis=1).to_numpy(), 0.0)
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    ranks = np.where(there, ranks - ranks.sum(axis=1, keepdims=True) / count, 0.0)
    length = np.linalg.norm(ranks, axis=1, keepdims=True)
    return ranks / np.where(length > 0, length, np.nan)


def _chunks(total: int, width: int) -> Iterator[int]:
    step = max(1, _CHUNK // max(width, 1))
    for start in range(0, total, step):
        yield min(step, total - start)
