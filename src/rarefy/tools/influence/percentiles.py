"""Ranks within classes: how numbers of different classes can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BYTES = 24
"""That ranking takes for each value, beside the values and their labels."""
AT_ONCE = 1 << 18
"""Values, or those of one class if it has more."""


def percentiles(values: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Of each value within its class: the share of the class's other values below it, in per cent;
    of equal values the middle one's. 0 is the lowest, 100 the highest, 50 a class's only value."""
    found = np.full(len(values), np.nan)
    order = np.lexsort((values, labels))  # within a class by value, NaN last
    ends, first = np.cumsum(np.bincount(labels, minlength=1)), 0
    while first < len(order):  # (classes together, or many small ones would take long)
        last = int(ends[min(int(np.searchsorted(ends, first + AT_ONCE)), len(ends) - 1)])
        mine = order[first:last]
        found[mine] = _of_sorted(values[mine], labels[mine])
        first = last
    return found


def _of_sorted(values: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    other = np.append(True, labels[1:] != labels[:-1])
    classes = np.flatnonzero(other)
    equal = np.flatnonzero(other | np.append(True, values[1:] != values[:-1]))  # runs of values
    sizes, lengths = (np.diff(each, append=len(values)) for each in (classes, equal))
    known = ~np.isnan(values)
    defined = np.repeat(np.add.reduceat(known, classes, dtype=np.int64), sizes)
    ranks = np.repeat(equal + (lengths - 1) / 2, lengths) - np.repeat(classes, sizes)
    found = np.where(defined > 1, 100 * ranks / np.maximum(defined - 1, 1), 50.0)
    return np.where(known, found, np.nan)
