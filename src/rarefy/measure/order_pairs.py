"""Numbers over orders of the classes, of which some are mirror images of each other.

What is head in one order of a mirrored pair is tail in the other, so that their errors are not
independent: a pair counts as one sample, its mean. An order whose mirror image is missing is one
too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarefy.measure.estimates import Interval, mean_interval

FEWEST = 3
"""Pairs and single orders from which an interval is drawn."""


@dataclass(frozen=True)
class OverOrders:
    """One number per order of the classes, and what they say together."""

    values: tuple[float, ...]
    """Of the orders that are there."""
    interval: Interval
    """Over pairs and single orders; without ends where there are fewer than ``FEWEST``."""
    pairs: int
    samples: tuple[float, ...] = ()
    """One per order, NaN where it is missing, and ``labels`` that pairs of orders share."""
    labels: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        return self.interval.mean

    @property
    def counted(self) -> str:
        """``1 pair + 1 order``"""
        singles = len(self.values) - 2 * self.pairs
        parts = ((self.pairs, "pair"), (singles, "order"))
        return " + ".join(f"{n} {word}{'s' * (n > 1)}" for n, word in parts if n) or "no order"

    def less(self, other: OverOrders) -> OverOrders:
        """The difference to another number of the same orders."""
        return over_orders(np.subtract(self.samples, other.samples), self.labels)

    def shown(self) -> str:
        """Mean and interval, or the single numbers where there is none."""
        if np.isfinite(self.interval.low):
            return "{:+.2f} [{:+.2f}, {:+.2f}]".format(*self.interval[:3])
        return ", ".join(f"{value:+.2f}" for value in self.values) or "-"


def by_pair(samples: ArrayLike, pairs: ArrayLike) -> NDArray[np.float64]:
    """``samples``, (order, ...), with the mean of a pair (two orders with one number in ``pairs``)
    in the place of its first order and NaN, which is missing everywhere, in that of the other.
    Where one of the two is missing the other stays."""
    found = np.array(samples, dtype=np.float64)
    labels = np.asarray(pairs)
    for label, count in Counter(labels.tolist()).items():
        if count == 2:
            first, second = np.flatnonzero(labels == label)
            both = np.isfinite(found[first]) & np.isfinite(found[second])
            mean = (found[first] + found[second]) / 2
            found[first] = np.where(both, mean, found[first])
            found[second] = np.where(both, np.nan, found[second])
    return found


def over_orders(samples: ArrayLike, pairs: ArrayLike, level: float = 0.95) -> OverOrders:
    """What one number per order says; ``pairs`` as for ``by_pair``.

    Example:
        >>> over_orders([2.0, 2.2, 2.7], [0, 0, 1]).counted
        '1 pair + 1 order'
    """
    values = np.asarray(samples, dtype=np.float64)
    there = values[np.isfinite(values)]
    found = mean_interval(by_pair(values, pairs), level)
    count = len(there) - found.n
    if found.n < FEWEST:
        found = found._replace(low=np.nan, high=np.nan)
    return OverOrders(
        tuple(there.tolist()),
        found,
        count,
        tuple(values.tolist()),
        tuple(np.asarray(pairs).tolist()),
    )
