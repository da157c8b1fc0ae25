"""Ranks within classes: how numbers of different classes can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BYTES = 24
"""That ranking takes for each value, beside the values and their labels."""


def percentiles(values: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Of each value within its class: the share of the class's other values below it, in per cent;
    of equal values the middle one's. 0 is the lowest, 100 the highest, 50 a class's only value."""
    found = np.full(len(values), np.nan)
    order = np.lexsort((values, labels))  # within a class by value, NaN last
    ends = np.cumsum(np.bincount(labels, minlength=1))
    for mine in np.split(order, ends[:-1]):
        sorted_ = values[mine]
        defined = len(mine) - int(np.isnan(sorted_).sum())
        if defined == 0:
            continue
        steps = np.flatnonzero(sorted_[1:defined] != sorted_[: defined - 1]) + 1
        edges = np.concatenate([[0], steps, [defined]])  # of runs of equal values
        ranks = np.repeat((edges[:-1] + edges[1:] - 1) / 2, np.diff(edges))
        found[mine[:defined]] = 100 * ranks / (defined - 1) if defined > 1 else 50.0
    return found
