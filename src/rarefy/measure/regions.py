"""Regions of a phase diagram: how well two agree, and which boundary of a given form fits best.

A region is of cells that are in it or not; a cell that is NaN is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Mask = NDArray[np.bool_]


def overlap(first: ArrayLike, second: ArrayLike) -> float:
    """Shared area over joint area (Jaccard): 1 for equal regions, 0 for disjoint ones; NaN where
    both are empty."""
    a, b = _compared(first, second)
    joint = int((a | b).sum())
    return float((a & b).sum() / joint) if joint else float("nan")


def agreement(first: ArrayLike, second: ArrayLike) -> float:
    """Share of cells on which two regions say the same."""
    a, b = _compared(first, second)
    return float((a == b).mean()) if a.size else float("nan")


def _compared(*regions: ArrayLike) -> tuple[Mask, ...]:
    """Both in the cells that both have."""
    measured = ~np.isnan(np.sum(np.broadcast_arrays(*regions), axis=0, dtype=float))
    return tuple(np.asarray(region)[measured].astype(bool) for region in regions)


@dataclass(frozen=True)
class BoundaryFit:
    """The two factors with which boundary curves of a given form fit a region best."""

    lower: float
    upper: float
    overlap: float


def between(y: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> Mask:
    """Cells (column, row) with low(column) <= y(row) <= high(column)."""
    return (y[None, :] >= low[:, None]) & (y[None, :] <= high[:, None])


def fit_boundaries(
    region: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    lower: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    upper: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    candidates: int = 81,
    span: float = 1e4,
) -> BoundaryFit:
    """Factors a, b for which {a lower(x) <= y <= b upper(x)} overlaps ``region``, (x, y), most.

    A search over a logarithmic grid of ``span`` either side of the median ratio, then a finer one
    around the best: the overlap of two sets of cells has no slope to follow. A region that reaches
    the edge of the diagram leaves its factor open; the search then gives the smallest that fits: a
    lower boundary far below the diagram, an upper one just outside it.
    """
    measured = ~np.isnan(np.asarray(region, dtype=float))
    inside = np.asarray(region, dtype=bool) & measured
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if not inside.any():
        return BoundaryFit(np.nan, np.nan, np.nan)
    low_shape, high_shape = lower(xs), upper(xs)

    def best(lows: NDArray[np.float64], highs: NDArray[np.float64]) -> tuple[float, float, float]:
        above = ys[None, None, :] >= lows[:, None, None] * low_shape[None, :, None]
        below = ys[None, None, :] <= highs[:, None, None] * high_shape[None, :, None]
        found = (-1.0, np.nan, np.nan)
        for a, over in zip(lows, above, strict=True):
            both = over[None] & below & measured
            hit = (both & inside).sum(axis=(1, 2))
            joint = (both | inside).sum(axis=(1, 2))
            score = hit / joint
            place = int(score.argmax())
            if score[place] > found[0]:
                found = (float(score[place]), float(a), float(highs[place]))
        return found

    centre_low = float(np.median(ys)) / max(float(np.median(low_shape)), 1e-12)
    centre_high = float(np.median(ys)) / max(float(np.median(high_shape)), 1e-12)
    wide = np.geomspace(1 / span, span, candidates)
    _, a, b = best(centre_low * wide, centre_high * wide)
    step = wide[1] / wide[0]
    fine = np.geomspace(1 / step, step, 21)
    score, a, b = best(a * fine, b * fine)
    return BoundaryFit(a, b, score)
