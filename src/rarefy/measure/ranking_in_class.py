"""Scores as ranks: within classes, by tenths of them, and what the highest ones find."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarefy.measure.trends import spearman_rho

DECILES = 10


def ranks_within(values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of its class that a sample is above, in [0, 1); equal values in order of place."""
    found = np.empty(len(values))
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        found[mine[np.argsort(values[mine], kind="stable")]] = np.arange(len(mine)) / len(mine)
    return found


def mean_by_decile(values: NDArray[np.float64], tenth: NDArray[np.int64]) -> NDArray[np.float64]:
    """(classifier, signal, decile) means of (classifier, sample) values."""
    found = np.empty((len(values), len(tenth), DECILES))
    for place, mine in enumerate(tenth):
        for decile in range(DECILES):
            found[:, place, decile] = values[:, mine == decile].mean(axis=1)
    return found


def rho_within(
    one: NDArray[np.float64], other: NDArray[np.float64], labels: NDArray[np.int64]
) -> float:
    """Spearman's rho, mean over the classes in which both numbers vary."""
    found = [
        spearman_rho(one[mine], other[mine])
        for label in np.unique(labels)
        for mine in [labels == label]
        if np.ptp(one[mine]) > 0 and np.ptp(other[mine]) > 0
    ]
    return float(np.mean(found)) if found else float("nan")


def recall(values: NDArray[np.float64], positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Share of the positives among as many samples as there are of them, the highest by each row
    of values; of equal values at the end, what drawing lots among them gives on average."""
    count = int(positive.sum())
    if count == 0:
        return np.full(len(values), np.nan)
    last = -np.partition(-values, count - 1, axis=1)[:, count - 1 : count]
    above, equal = values > last, values == last
    lots = (count - above.sum(axis=1)) / equal.sum(axis=1)
    found = (above & positive).sum(axis=1) + lots * (equal & positive).sum(axis=1)
    return np.asarray(found / count, dtype=np.float64)
