"""Results as arrays whose first dimension is the seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import xarray as xr

Data = TypeVar("Data", np.ndarray, xr.DataArray)


def by_seed(values: xr.DataArray, *along: str) -> np.ndarray:
    """(seed, ...) in the order of ``along``; without it all other dimensions, by name."""
    rest = along or sorted(str(dim) for dim in values.dims if dim != "seed")
    return np.asarray(values.transpose("seed", *rest).values, dtype=float)


def known(condition: Data, *values: Data) -> Data:
    """What is true of ``values``, as 0 and 1; NaN where one of them is missing: a lost run neither
    passes nor fails."""
    for value in values:
        condition = xr.where(np.isfinite(value), condition, np.nan)
    return condition


def picked(at: xr.Dataset, take: str | Callable[[xr.Dataset], Any]) -> Any:
    """An output by its name, or what is computed from the slice."""
    return at[take] if isinstance(take, str) else take(at)


def texts(results: xr.Dataset, axis: str) -> list[str]:
    """The values of an axis of names."""
    return [str(value) for value in results[axis].values]
