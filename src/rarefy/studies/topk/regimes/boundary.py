"""Where one regime turns into the other: the SNR at which a falling curve passes a level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.statistics import Slope, loglog_slope

HALF = 0.5
"""The boundary is where loss or error is half of what guessing has."""


def crossing(snr: NDArray[np.float64], values: NDArray[np.float64], level: float) -> float:
    """The largest SNR at which ``values``, (snr,), fall to below ``level``; linear between points
    in log SNR; NaN where they never do, or one of the two points is missing."""
    high, low = values[:-1] >= level, values[1:] < level
    passed = np.flatnonzero(high & low)
    if not passed.size:
        return float("nan")
    at = int(passed[-1])
    share = (values[at] - level) / (values[at] - values[at + 1])
    start, end = np.log(snr[at]), np.log(snr[at + 1])
    return float(np.exp(start + share * (end - start)))


def on_grid(formula: Callable[..., float], *axes: xr.DataArray) -> xr.DataArray:
    """A formula of the theory at every point of the axes it takes."""
    found: xr.DataArray = xr.apply_ufunc(np.vectorize(formula, otypes=[float]), *axes)
    return found


def of_chance(results: xr.Dataset, what: str) -> xr.DataArray:
    """``test_loss`` in units of log T, or ``test_error`` in units of 1 - 1/T."""
    classes = results["classes"]
    return results[what] / (np.log(classes) if what == "test_loss" else 1 - 1 / classes)


def boundary(results: xr.Dataset, what: str = "test_loss") -> xr.DataArray:
    """SNR at which it is half of chance, (samples, classes, d, seed, ...), a seed at a time."""
    curves = of_chance(results.sortby("snr"), what)
    return xr.apply_ufunc(
        lambda values: np.apply_along_axis(
            lambda curve: crossing(curves["snr"].values, curve, HALF), -1, values
        ),
        curves,
        input_core_dims=[["snr"]],
    )


def exponent_in(where: xr.DataArray, axis: str) -> Slope:
    """Log-log slope of the boundary along ``axis``, from its geometric mean over the other axes
    that ``where`` has besides ``seed``; only points at which every one of them has a boundary."""
    others = [str(dim) for dim in where.dims if dim not in (axis, "seed")]
    logarithm: xr.DataArray = xr.apply_ufunc(np.log, where)
    means: xr.DataArray = xr.apply_ufunc(np.exp, logarithm.mean(others, skipna=False))
    return loglog_slope(where[axis].values, means.transpose("seed", axis).values)
