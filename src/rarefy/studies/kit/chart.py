"""What a study shows, declared: curves with bands, and heat maps, by the axes of the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.kit.arrays import by_seed, picked


@dataclass(frozen=True)
class Chart:
    """Curves of one quantity along ``x``: a panel per value of ``panel``, in it a curve per
    combination of ``curves``, the mean over seeds with its 95 % band. ``label``, ``role`` and
    ``style`` of a curve are functions of its values, given by name."""

    name: str
    title: str
    caption: str
    take: str | Callable[[xr.Dataset], xr.DataArray]
    x: str
    x_label: str
    y_label: str
    curves: Mapping[str, Sequence[Any]]
    label: Callable[..., str]
    role: Callable[..., str | None]
    style: Callable[..., str] = lambda **_: "solid"
    panel: str = ""
    """axis of the panels; one panel without it"""
    panel_title: Callable[[Any], str] = str
    at: Mapping[str, Any] = field(default_factory=dict)
    x_log: bool = False
    y_log: bool = False
    further: Callable[[Any], Sequence[Curve]] = lambda _: ()
    """curves of theory, say, for the value of a panel"""

    def picture(self, results: xr.Dataset) -> Picture:
        here = results.sel(self.at)
        values = results[self.panel].values if self.panel else [None]
        return Picture(
            self.name, self.title, self.caption, [self._panel(here, value) for value in values]
        )

    def _panel(self, here: xr.Dataset, value: Any) -> Lines:
        found = []
        for combination in product(*self.curves.values()):
            point = dict(zip(self.curves, combination, strict=True))
            at = here.sel({**({self.panel: value} if self.panel else {}), **point})
            taken = by_seed(picked(at, self.take), self.x)
            look = (self.role(**point), self.style(**point))
            found.append(mean_curve(self.label(**point), at[self.x].values, taken, *look))
        return Lines(
            [*found, *self.further(value)],
            self.x_label,
            self.y_label,
            self.panel_title(value) if self.panel else "",
            self.x_log,
            self.y_log,
        )


def heat_map(
    values: xr.DataArray,
    x: str,
    y: str,
    labels: Mapping[str, str],
    colour_label: str,
    title: str = "",
    **look: Any,
) -> HeatMap:
    """A panel of the mean over seeds by two axes; ``labels``: of the axes, ``look``: further
    fields of a heat map."""
    mean = values.mean("seed") if "seed" in values.dims else values
    return HeatMap(
        mean.transpose(y, x).values,
        ticks(values[x]),
        ticks(values[y]),
        labels[x],
        labels[y],
        colour_label,
        title,
        **look,
    )


def ticks(axis: xr.DataArray) -> list[float]:
    """The values of an axis, whole ones as whole numbers: 1400, not 1.4e+03."""
    return [int(value) if float(value).is_integer() else float(value) for value in axis.values]
