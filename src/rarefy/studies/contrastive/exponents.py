"""Exponents in eps_min of minority over majority means."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.measure.estimates import bootstrap_interval
from rarefy.measure.trends import Slope


def exponent_in_eps(values: xr.DataArray) -> Slope:
    """Log-log slope against eps_min of the minority's mean over the majority's.

    Means over runs are divided, not runs averaged after dividing: M_j is empty in some runs, and
    equally often in both groups, so only the ratio of means is free of it.
    """
    both = values.transpose("seed", "group", "eps_min").values
    log_eps = np.log(values["eps_min"].values)
    usable = log_ratio(both)[1]
    found = bootstrap_interval(both, lambda sample: slope_in_eps(sample, log_eps))
    own = float(slope_in_eps(both, log_eps))
    return Slope(own, found.low, found.high, found.n, int(usable.sum()))


def log_ratio(sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log of minority over majority means of a (..., seed, group, eps_min) array, and where it
    exists (a mean may be missing, or 0)."""
    there = np.isfinite(sample)
    count = there.sum(axis=-3)
    total = np.where(there, sample, 0.0).sum(axis=-3)
    mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    majority, minority = mean[..., 0, :], mean[..., 1, :]
    usable = (majority > 0) & (minority > 0)
    return np.log(np.where(usable, minority, 1.0) / np.where(usable, majority, 1.0)), usable


def slope_in_eps(sample: np.ndarray, log_eps: np.ndarray) -> np.ndarray:
    """Least-squares slope of ``log_ratio`` on log eps_min; NaN with fewer than two points."""
    ratio, usable = log_ratio(sample)
    count = usable.sum(axis=-1)
    centre = np.where(usable, log_eps, 0.0).sum(axis=-1) / np.maximum(count, 1)
    x = np.where(usable, log_eps - centre[..., None], 0.0)
    square = np.where(count > 1, (x * x).sum(axis=-1), np.nan)
    return np.asarray((x * ratio).sum(axis=-1) / square)
