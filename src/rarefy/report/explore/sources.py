"""What the page shows: results of one study, cut at the positions of its sliders.

A slider stands on one value of its axis or on "all". The study's own pictures are made of whatever
is chosen, as if the study had been run for these values alone; the numbers for charts are those of
all cells, so that a chart needs no server.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Study
from rarefy.core.parameters import parameters_of
from rarefy.core.picture import HeatMap, Lines, Picture
from rarefy.report import interactive, style
from rarefy.report.panel_data import colour_limits
from rarefy.report.plotly_parts import numbers

ALL = -1
"""The position of a slider at which every value of its axis is shown."""
MOST_POINTS = 60_000
"""Of one output in a chart: more numbers would make a saved page several megabytes."""
DIGITS = 4

Stops = tuple[int, ...]
Plain = dict[str, Any]
_log = logging.getLogger("rarefy")


@dataclass
class Source:
    """Results of a study; ``key`` is their name in the page's address."""

    key: str
    title: str
    study: Study
    results: xr.Dataset
    seen: set[Stops] = field(default_factory=set)
    """The positions that the study's own figures were asked for at."""
    _drawn: dict[Stops, list[Plain]] = field(default_factory=dict)
    _whole: dict[str, Plain] | None = None
    """The same figures of all cells, by name: every position is drawn to their scale."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def sizes(self) -> Stops:
        return tuple(self.results.sizes[axis] for axis in self.study.axes)

    def pictures(self, stops: Stops) -> list[Plain]:
        """The study's pictures of the chosen cells, ready for plotly; those that cannot be made of
        so few say why."""
        with self._lock:
            self.seen.add(stops)
            if stops not in self._drawn:
                self._drawn[stops] = self._draw(stops)
            return self._drawn[stops]

    def renew(self, results: xr.Dataset) -> None:
        """More cells are there, and all figures are drawn again: they share their scale."""
        with self._lock:
            self.results, self._whole = results, None
            self._drawn.clear()

    def _draw(self, stops: Stops) -> list[Plain]:
        whole = (ALL,) * len(stops)
        if self._whole is None and stops != whole:
            self._whole = {one["name"]: one for one in self._made(whole)}
        return self._made(stops)

    def _made(self, stops: Stops) -> list[Plain]:
        try:
            pictures = self.study_at(stops).picture(self.results_at(stops))
        except Exception as error:  # a study's own code, for cells it may not be meant for
            _log.debug("pictures at %s", stops, exc_info=error)
            words = "The study's own figures need more than the chosen values; move a slider to all"
            return [{"name": "", "title": "", "caption": "", "panels": [], "problem": f"{words}."}]
        return [_plain(picture, (self._whole or {}).get(picture.name)) for picture in pictures]

    def study_at(self, stops: Stops) -> Study:
        chosen: dict[str, Any] = {
            axis: (getattr(self.study, axis)[stop],)
            for axis, stop in zip(self.study.axes, stops, strict=True)
            if stop != ALL
        }
        return dataclasses.replace(self.study, **chosen)

    def results_at(self, stops: Stops) -> xr.Dataset:
        pairs = zip(self.study.axes, stops, strict=True)
        return self.results.isel({axis: [stop] for axis, stop in pairs if stop != ALL})

    def numbers(self) -> Plain:
        """Of every cell: whether it is there, and median and quartiles over seeds of each output;
        arrays are flat, the last dimension the fastest."""
        kind, axes = type(self.study), list(self.study.axes)
        ordered = self.results.transpose(*axes, "seed", ...)
        outputs = [_output(ordered[name], axes) for name in ordered.data_vars]
        there = np.isfinite(ordered["nonfinite_step"].values).all(axis=len(axes))
        meanings = {name: one.meaning for name, one in parameters_of(kind).items()}
        used = dict.fromkeys([*axes, *(dim for one in outputs for dim in one["dims"])])
        return {
            "key": self.key,
            "title": self.title,
            "seeds": int(self.results.sizes["seed"]),
            "axes": axes,
            "there": [int(flag) for flag in there.ravel()],
            "dims": {
                name: {"meaning": meanings.get(name, ""), **_places(self.results[name].values)}
                for name in used
            },
            "outputs": [one for one in outputs if one["mid"]],
        }


def _plain(picture: Picture, whole: Plain | None) -> Plain:
    """A picture for plotly, drawn to the scale of the one of all cells: what moves when a slider
    does are the values, not the axes."""
    panels = []
    for panel in picture.panels:
        every = whole["panels"] if whole else []
        same = [one["figure"] for one in every if one["title"] == panel.title and "figure" in one]
        drawn: Plain = {"title": panel.title}
        try:
            drawn["figure"] = _figure(picture, panel, same[:1])
        except Exception as error:  # one panel must not take the others along
            drawn["problem"] = f"{type(error).__name__}: {error}"
        panels.append(drawn)
    return {
        "name": picture.name,
        "title": picture.title,
        "caption": picture.caption,
        "panels": panels,
        "problem": "",
    }


def _figure(picture: Picture, panel: Lines | HeatMap, wholes: list[Plain]) -> Plain:
    """Axes and colours reach as far as those of the whole, and farther where the chosen values do
    (a mean over all cells may hide a large one)."""
    if isinstance(panel, HeatMap):
        limits = colour_limits(picture).get(panel.colour_label)
        for over in (whole["data"][0] for whole in wholes if whole["data"]):
            low, high = limits or (over["zmin"], over["zmax"])
            limits = min(low, over["zmin"]), max(high, over["zmax"])
        return interactive.figure(panel, limits)
    figure = interactive.figure(panel)
    for whole in wholes:
        for axis, name in (("xaxis", "x"), ("yaxis", "y")):
            ours, theirs = figure["layout"][axis], whole["layout"][axis]
            if ours["title"] == theirs["title"] and ours.get("type") == theirs.get("type"):
                _widen(ours, [trace[name] for one in (figure, whole) for trace in one["data"]])
                ours |= {ticks: theirs.get(ticks) for ticks in ("dtick", "tickformat")}
    return figure


def _widen(axis: Plain, values: Sequence[Sequence[float | None]]) -> None:
    shown = np.array([value for part in values for value in part if value is not None], dtype=float)
    shown = np.log10(shown[shown > 0]) if axis.get("type") == "log" else shown
    if shown.size:
        room = 0.05 * float(np.ptp(shown)) or 0.5
        axis["range"] = [float(shown.min()) - room, float(shown.max()) + room]


def _places(values: np.ndarray) -> Plain:
    """The values of an axis as texts and, where they are numbers, as numbers."""
    measured = values.dtype.kind in "iuf"
    labels = [style.number(float(one), 6) if measured else str(one) for one in values.tolist()]
    if len(set(labels)) < len(labels):
        labels = [str(one) for one in values.tolist()]
    return {"labels": labels, "values": numbers(values.astype(float)) if measured else None}


def _output(variable: xr.DataArray, axes: Sequence[str]) -> Plain:
    values = np.asarray(variable.values, dtype=np.float64)
    large = values.size // max(values.shape[len(axes)], 1) > MOST_POINTS
    low, mid, high = np.empty((3, 0)) if large else quartiles(values, len(axes))
    unit = variable.attrs.get("unit", "")
    return {
        "name": str(variable.name),
        "meaning": variable.attrs.get("meaning", "") + (f" ({unit})" if unit else ""),
        "dims": [str(dim) for dim in variable.dims if dim != "seed"],
        **{
            name: numbers(part, DIGITS)
            for name, part in (("low", low), ("mid", mid), ("high", high))
        },
    }


def quartiles(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Lower quartile, median and upper quartile of what is finite along an axis, shape (3, ...);
    NaN where nothing is. (``np.nanquantile`` takes a Python call per point.)"""
    ordered = np.sort(np.where(np.isfinite(values), values, np.nan), axis=axis)  # NaN come last
    last = np.isfinite(ordered).sum(axis=axis, keepdims=True) - 1
    found = []
    for share in (0.25, 0.5, 0.75):
        place = share * np.maximum(last, 0)
        below, above = np.floor(place).astype(int), np.ceil(place).astype(int)
        ends = (np.take_along_axis(ordered, at, axis) for at in (below, above))
        lower, upper = ends
        found.append((lower + (place - below) * (upper - lower)).squeeze(axis))
    return np.stack(found)
