"""What both renderers need done first: missing values, logarithms of zero, too many points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import bad_value
from rarefy.core.picture import Curve, HeatMap, Lines, Picture, all_numbers
from rarefy.report.bounded import bounds, kept_inside
from rarefy.report.style import MARKED_POINTS, MEASURED, Look, looks, number

FEW_CELLS = 12  # of a heat map's axis: all are named, aslant where they must
MOST_POINTS = 800  # more than a screen shows; trajectories may have a hundred times as many

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CurveData:
    """A curve ready to be drawn: arrays of one length, NaN where there is nothing to show."""

    label: str
    x: Floats
    y: Floats
    low: Floats | None
    high: Floats | None
    look: Look
    covered: int = 0
    """how many later curves lie on it"""

    @property
    def marked(self) -> bool:
        """Whether points have symbols: those of what is measured."""
        return self.look.style == "points" or self.look.style in MEASURED

    @property
    def sparse(self) -> bool:
        """Whether only some of its points have: it has too many."""
        many = int(np.isfinite(self.y).sum()) > MARKED_POINTS
        return many and self.look.style != "points"

    def band(self) -> list[tuple[Floats, Floats, Floats]]:
        """Runs of neighbouring points that have a whole band: (x, low, high)."""
        if self.low is None or self.high is None:
            return []
        there = np.isfinite(self.x) & np.isfinite(self.low) & np.isfinite(self.high)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], there, [0]])))
        return [
            (self.x[start:end], self.low[start:end], self.high[start:end])
            for start, end in edges.reshape(-1, 2)
        ]


@dataclass(frozen=True)
class LinesData:
    """The curves of a panel, and how many values a logarithmic axis could not show."""

    curves: list[CurveData]
    together: list[tuple[str, ...]]
    """names of curves that lie on each other"""
    hidden: int
    marks: list[tuple[float, str]]

    @property
    def empty(self) -> bool:
        return not any((np.isfinite(curve.x) & np.isfinite(curve.y)).any() for curve in self.curves)

    def x_extent(self) -> tuple[float, float]:
        """Smallest and largest x of what is shown, marks included; (0, 1) when nothing is."""
        shown = [curve.x[np.isfinite(curve.x) & np.isfinite(curve.y)] for curve in self.curves]
        every = np.concatenate([*shown, np.array([x for x, _ in self.marks])])
        return (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)

    def y_extent(self) -> tuple[float, float]:
        shown = [curve.y[np.isfinite(curve.y)] for curve in self.curves]
        every = np.concatenate([*shown, np.empty(0)])
        return (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)


def prepare_lines(panel: Lines) -> LinesData:
    """Thin, drop what a logarithmic axis cannot show, keep intervals of shares within 0 and 1, and
    give every curve its look."""
    curves: list[CurveData] = []
    hidden = 0
    parts = [arrays(curve, panel.x_log) for curve in panel.curves]
    floor = _floor([y for _, y, _, _ in parts])
    limits = bounds(panel.y_label, np.concatenate([np.empty(0), *(y for _, y, _, _ in parts)]))
    for curve, look, (x, y, low, high) in zip(
        panel.curves, looks(panel.curves), parts, strict=True
    ):
        if limits is not None and low is not None and high is not None:
            low, high = kept_inside(y, low, high, limits)
        gone = (panel.x_log & (x <= 0)) | (panel.y_log & (y <= 0))
        hidden += int(gone.sum())
        x, y = np.where(panel.x_log & (x <= 0), np.nan, x), np.where(gone, np.nan, y)
        if panel.y_log and low is not None and high is not None:
            # an interval that reaches zero goes to the bottom of the picture; without its
            # upper end there is nothing to fill
            low = np.where(np.isfinite(low), np.maximum(low, floor), np.nan)
            high = np.where(high > 0, np.maximum(high, floor), np.nan)
        curves.append(CurveData(curve.label, x, y, low, high, look))
    marks = [
        (float(x), label)
        for x, label in panel.marks
        if np.isfinite(x) and (x > 0 or not panel.x_log)
    ]
    return LinesData(*_covered(curves, panel.y_log), hidden, marks)


def _covered(
    curves: Sequence[CurveData], logarithmic: bool
) -> tuple[list[CurveData], list[tuple[str, ...]]]:
    """The curves, each with how many later ones lie on it, and the names of those that do: at three
    of four points closer than a hundredth of what the axis shows."""
    heights = [np.log(curve.y) if logarithmic else curve.y for curve in curves]
    shown = np.concatenate([np.empty(0), *(y[np.isfinite(y)] for y in heights)])
    near = 0.01 * float(np.ptp(shown)) if shown.size else 0.0
    result: list[CurveData] = []
    together: list[tuple[str, ...]] = []
    for index, (curve, y) in enumerate(zip(curves, heights, strict=True)):
        there = np.isfinite(y)
        over = [
            other
            for other, others in zip(curves[index + 1 :], heights[index + 1 :], strict=True)
            if there.sum() > 1
            and np.array_equal(curve.x, other.x, equal_nan=True)
            and (np.abs(y - others)[there] <= near).mean() >= 0.75
        ]
        result.append(replace(curve, covered=min(len(over), 3)))
        names = {curve.label, *(other.label for other in over)}
        if over and not any(names <= set(known) for known in together):
            together.append((curve.label, *(other.label for other in over)))
    return result, together


def arrays(curve: Curve, logarithmic: bool) -> tuple[Floats, Floats, Floats | None, Floats | None]:
    """x, y, low, high of a curve: of one length, thinned, NaN for whatever is not finite."""

    def as_floats(name: str, values: object) -> Floats:
        array = np.asarray(values, dtype=np.float64).ravel()
        if len(array) != len(x):
            raise bad_value(
                f"{name} of curve {curve.label!r}", len(array), f"x has {len(x)} values"
            )
        return np.where(np.isfinite(array), array, np.nan)[keep]

    x = np.asarray(curve.x, dtype=np.float64).ravel()
    keep = _kept(len(x), logarithmic)
    low = None if curve.low is None else as_floats("low", curve.low)
    high = None if curve.high is None else as_floats("high", curve.high)
    return as_floats("x", x), as_floats("y", curve.y), low, high


def _kept(count: int, logarithmic: bool) -> NDArray[np.int64]:
    """Indices of at most MOST_POINTS points: even in x, or in log x where that is shown."""
    if count <= MOST_POINTS:
        return np.arange(count)
    spread = (
        np.geomspace(1, count, MOST_POINTS) if logarithmic else np.linspace(1, count, MOST_POINTS)
    )
    return np.unique(np.round(spread).astype(np.int64) - 1)


def _floor(values: Sequence[Floats]) -> float:
    positive = np.concatenate([np.empty(0), *(y[y > 0] for y in values)])
    return float(positive.min()) / 2 if positive.size else 1e-12


def heat_values(panel: HeatMap) -> Floats:
    """The matrix with NaN for whatever is not finite, its shape checked against the labels."""
    values = np.asarray(panel.values, dtype=np.float64)
    if values.shape != (len(panel.y), len(panel.x)):
        raise bad_value(
            "values of heat map", values.shape, f"labels say {(len(panel.y), len(panel.x))}"
        )
    return np.where(np.isfinite(values), values, np.nan)


def own_limits(panel: HeatMap) -> tuple[float, float]:
    """Ends of the colour scale of one heat map; those of a signed one lie evenly about 0."""
    return _opened(_range(panel))


def _opened(limits: tuple[float, float]) -> tuple[float, float]:
    """A scale needs two ends."""
    low, high = limits
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _range(panel: HeatMap) -> tuple[float, float]:
    values = heat_values(panel)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if panel.signed:
        high = max(-low, high)
        low = -high
    return low, high


def colour_limits(picture: Picture) -> dict[str, tuple[float, float]]:
    """One colour scale for heat maps of one picture that show the same quantity: side by side
    they are there to be compared."""
    limits: dict[str, tuple[float, float]] = {}
    for panel in picture.panels:
        if isinstance(panel, HeatMap) and np.isfinite(heat_values(panel)).any():
            low, high = _range(panel)
            others = limits.get(panel.colour_label, (low, high))
            limits[panel.colour_label] = (min(low, others[0]), max(high, others[1]))
    return {label: _opened(ends) for label, ends in limits.items()}


def tick_labels(values: Sequence[object]) -> list[str]:
    """Labels of a heat map's rows or columns, as short as tells them apart."""
    short = [number(value, 3) for value in values]
    return short if len(set(short)) == len(short) else [number(value, 6) for value in values]


def round_cells(labels: Sequence[object], most: int) -> list[int]:
    """Cells of an evenly spaced axis whose values are multiples of a round number, at most so many;
    none where these would be fewer than four or the values are not evenly spaced."""
    if len(labels) < 2 or not all_numbers(labels):
        return []
    values = np.asarray(labels, dtype=np.float64)
    step = float(values[1] - values[0])
    if step == 0 or not np.allclose(np.diff(values), step, rtol=1e-6, atol=0):
        return []
    span = float(np.ptp(values))
    for power in range(int(np.floor(np.log10(span))) - 3, int(np.floor(np.log10(span))) + 1):
        for digit in (1, 2, 5):
            unit = digit * 10.0**power
            away = np.abs(values - unit * np.round(values / unit))
            found = np.flatnonzero(away < 1e-3 * abs(step))
            if 4 <= len(found) <= most and len(set(np.diff(found))) == 1:
                return [int(cell) for cell in found]
    return []


def shown_cells(labels: Sequence[object], room: int) -> list[int]:
    """The cells that are named: all of a few, else those of round values, or every so many."""
    if len(labels) <= max(room, FEW_CELLS):
        return list(range(len(labels)))
    return round_cells(labels, room) or list(range(0, len(labels), -(-len(labels) // room)))


def grows_upward(labels: Sequence[object], under_curves: bool = False) -> bool:
    """A measured quantity grows upward; names and running numbers are read from the top, but for
    those under a curve, which are a quantity."""
    if len(labels) < 2 or not all_numbers(labels):
        return False
    values = np.asarray(labels, dtype=np.float64)
    counted = not under_curves and values[0] in (0, 1) and bool((np.diff(values) == 1).all())
    return bool((np.diff(values) > 0).all()) and not counted
