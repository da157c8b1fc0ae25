"""Results of any study that are made up, so that its verdicts and charts are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study

Made = Callable[[xr.Dataset], Any]
"""An output as a function of the coordinates."""


def coordinates_of(study: Study, seeds: int | None = None) -> dict[str, Any]:
    """Of the results of a study: those of its outputs, the seeds and its axes."""
    axes = {axis: list(getattr(study, axis)) for axis in study.axes}
    return {**study.coordinates(), "seed": np.arange(seeds or study.seeds), **axes}


def fabricated(
    study: Study, seeds: int, values: Mapping[str, Any], rest: float | None = None
) -> xr.Dataset:
    """Results with these outputs: functions of the coordinates, dimensions and an array, or
    anything that broadcasts; ``rest``: of all others, which are not there otherwise."""
    grid = xr.Dataset(coords=coordinates_of(study, seeds))
    results = {}
    for output in study.outputs():
        value = values.get(output.name, rest)
        if value is None:
            continue
        if isinstance(value, tuple):
            value = xr.DataArray(value[1], dims=value[0])
        dims = (*study.axes, "seed", *output.dims)
        along = {dim: grid[dim] for dim in dims}
        zeros = xr.DataArray(np.zeros([grid.sizes[dim] for dim in dims]), along, dims)
        full = zeros + (value(grid) if callable(value) else value)
        results[output.name] = full.transpose(*dims)
    return xr.Dataset(results)
