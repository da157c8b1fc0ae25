"""Results cut along their axes: every combination of values, and curves of what is left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeVar

import xarray as xr

from rarefy.core.picture import Curve
from rarefy.measure.curves import mean_curve
from rarefy.studies.kit.arrays import by_seed

Data = TypeVar("Data", xr.Dataset, xr.DataArray)


def every(results: Data, *axes: str) -> Iterator[tuple[tuple[Any, ...], Data]]:
    """The values of some axes, and the results there: in place of nested loops. By position, so
    that a value may stand twice."""
    for place in product(*(range(results.sizes[name]) for name in axes)):
        at = dict(zip(axes, place, strict=True))
        yield tuple(results[name].values[index] for name, index in at.items()), results.isel(at)


def curve_along(
    label: str, values: xr.DataArray, x: str, role: str | None = None, style: str = "solid"
) -> Curve:
    """The mean over seeds along one axis with its 95 % interval."""
    return mean_curve(label, values[x].values, by_seed(values, x), role, style)
