"""What can be said of a population from several overlapping parts of one data set."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rarefy.measure.estimates import Band, Interval, mean_band


def resampled_band(values: ArrayLike, share: float, level: float = 0.95) -> Band:
    """Mean over seeds, the first axis, each of which drew this share of one data set, with an
    interval for what the population would give (Nadeau and Bengio 2003, corrected resampled t).

    Such parts overlap. Their variance v is (1/m - 1/N) sigma^2, and that of the mean of s of them
    sigma^2 / N + v / s = v (share / (1 - share) + 1/s): more seeds cannot make up for the samples
    that the set does not have. A share of 1 has nothing to learn this from: its interval is about
    whatever else the seeds draw, for these very samples.
    """
    found = mean_band(values, level=level)
    shared = share / (1 - share) if share < 1 else 0.0
    wider = np.sqrt(1 + shared * found.n)  # than v / s alone
    low, high = (found.mean + (end - found.mean) * wider for end in (found.low, found.high))
    return Band(found.mean, low, high, found.n)


def resampled_interval(values: ArrayLike, share: float, level: float = 0.95) -> Interval:
    """The same of one number per seed."""
    band = resampled_band(np.ravel(np.asarray(values, dtype=np.float64)), share, level)
    return Interval(float(band.mean), float(band.low), float(band.high), int(band.n))
