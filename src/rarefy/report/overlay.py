"""What lies over a heat map: curves in the units of its axes, and level lines of its own values.

The cells of a heat map are drawn evenly whatever values they stand for, so a place on its axes is a
position: 0 is the middle of the first cell, 1 that of the second, and the map ends half a cell
beyond the outer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rarefy.core.errors import bad_value
from rarefy.core.picture import HeatMap
from rarefy.report.panel_data import Floats, arrays, heat_values
from rarefy.report.style import BLACK, FINE_CELLS, Look, looks

_LEAST_CELLS = 3.0  # a smaller ring of a level line is left out of a fine map
_LEVEL_STYLES = ("solid", "dashed", "dotted")


@dataclass(frozen=True)
class OverlayLine:
    """A line ready to be drawn over a map: positions, NaN between its pieces. ``units`` are the
    same points in the units of the axes; a level line, which is thin, has none."""

    label: str
    x: Floats
    y: Floats
    look: Look
    units: tuple[Floats, Floats] | None = None

    @property
    def thin(self) -> bool:
        return self.units is None


def overlay(panel: HeatMap) -> list[OverlayLine]:
    """The level lines of a map and then its curves, without those that do not meet it."""
    lines = [*_levels(panel), *_curves(panel)]
    return [line for line in lines if np.isfinite(line.x).any()]


# ---------------------------------------------------------------------------------- curves


@dataclass(frozen=True)
class AxisPositions:
    """Values of an axis and back: ``values`` rise, ``positions`` rise or fall with them."""

    values: Floats
    positions: Floats
    by_ratio: bool

    def of(self, values: Floats) -> Floats:
        """Positions of values: between cells by their distance, or by their ratio where that is
        how the cells follow each other; beyond the outer cells as between the last two."""
        if not self.by_ratio:
            return _between(values, self.values, self.positions)
        known = np.where(values > 0, values, np.nan)
        return _between(np.log(known), np.log(self.values), self.positions)

    def units(self, positions: Floats) -> Floats:
        turn = slice(None) if self.positions[-1] >= self.positions[0] else slice(None, None, -1)
        values = np.log(self.values) if self.by_ratio else self.values
        found = _between(positions, self.positions[turn], values[turn])
        return np.exp(found) if self.by_ratio else found


def axis_positions(labels: Sequence[object], name: str) -> AxisPositions:
    """The places on an axis whose labels are numbers that rise or fall all the way."""
    values = np.asarray(labels, dtype=np.float64).ravel()
    positions = np.arange(len(values), dtype=np.float64)
    steps = np.diff(values)
    if (steps < 0).all() and steps.size:
        values, positions, steps = values[::-1], positions[::-1], -steps[::-1]
    wrong = np.flatnonzero(~((steps > 0) & np.isfinite(steps)))
    if wrong.size:
        raise bad_value(
            f"{name} of heat map with curves",
            float(values[wrong[0] + 1]),
            f"comes after {values[wrong[0]]:g}, but the axes under a curve must rise all the way, "
            "or fall",
        )
    by_ratio = False
    if steps.size and values[0] > 0:
        ratios = np.diff(np.log(values))
        by_ratio = bool(ratios.max() / ratios.min() < 0.99 * steps.max() / steps.min())
    return AxisPositions(values, positions, by_ratio)


def _between(at: Floats, known: Floats, there: Floats) -> Floats:
    """Linear interpolation between rising ``known`` points, and on beyond the outer ones."""
    if len(known) < 2:  # one cell: nothing says how far away other values are
        return np.where(at == known[0], there[0], np.nan) if len(known) else at * np.nan
    left = np.clip(np.searchsorted(known, at) - 1, 0, len(known) - 2)
    share = (at - known[left]) / (known[left + 1] - known[left])
    return np.asarray(there[left] + share * (there[left + 1] - there[left]))


def _curves(panel: HeatMap) -> list[OverlayLine]:
    if not panel.curves:
        return []
    across, up = axis_positions(panel.x, "x"), axis_positions(panel.y, "y")
    result = []
    for curve, look in zip(panel.curves, looks(panel.curves), strict=True):
        x, y, _, _ = arrays(curve, logarithmic=across.by_ratio)
        x, y = _cut(across.of(x), up.of(y), panel, pieces=look.style != "points")
        result.append(OverlayLine(curve.label, x, y, look, (across.units(x), up.units(y))))
    return result


def _cut(x: Floats, y: Floats, panel: HeatMap, pieces: bool) -> tuple[Floats, Floats]:
    """What lies within the map: points, or pieces of the line through them that end where it
    crosses the map's edge (Liang and Barsky 1984)."""
    high = np.array([len(panel.x), len(panel.y)]) - 0.5
    points = np.stack([x, y], axis=1)
    if not pieces:
        inside = ((points >= -0.5) & (points <= high)).all(axis=1)
        return x[inside], y[inside]
    start, step = points[:-1], np.diff(points, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        edges = np.stack([(-0.5 - start) / step, (high - start) / step])
    still = (step == 0) & (start >= -0.5) & (start <= high)
    enter = np.where(still, -np.inf, edges.min(axis=0)).max(axis=1).clip(min=0)
    leave = np.where(still, np.inf, edges.max(axis=0)).min(axis=1).clip(max=1)
    found: list[NDArray[np.float64]] = []
    goes_on = False
    for index in range(len(start)):
        if not enter[index] < leave[index]:  # NaN too: a gap in the curve
            goes_on = False
            continue
        if not (goes_on and enter[index] == 0):
            found += [np.full(2, np.nan), start[index] + enter[index] * step[index]]
        found.append(start[index] + leave[index] * step[index])
        goes_on = bool(leave[index] == 1)
    kept = np.array(found[1:]).reshape(-1, 2)
    return kept[:, 0], kept[:, 1]


# ---------------------------------------------------------------------------------- levels


def _levels(panel: HeatMap) -> list[OverlayLine]:
    values = heat_values(panel)
    result = []
    for turn, level in enumerate(panel.levels):
        x, y = _level_line(values, float(level))
        look = Look(BLACK, _LEVEL_STYLES[turn % len(_LEVEL_STYLES)], 0, True)
        result.append(OverlayLine(f"measured: {level:g}", x, y, look))
    return result


def _level_line(values: Floats, level: float) -> tuple[Floats, Floats]:
    """Where the values cross the level, by linear interpolation between the middles of cells; the
    outer half of an outer cell is as its middle, so that a line reaches the map's edge."""
    nothing = np.empty(0), np.empty(0)
    finite = values[np.isfinite(values)]
    if not finite.size or not finite.min() < level < finite.max():
        return nothing
    y, x = (np.concatenate([[-0.5], np.arange(n), [n - 0.5]]) for n in values.shape)
    padded = np.ma.masked_invalid(np.pad(values, 1, mode="edge"))
    lines = Figure().subplots().contour(x, y, padded, levels=[level]).allsegs[0]
    if values.size > FINE_CELLS:
        # of a fine map the course of the line is of interest; single cells beyond the level, which
        # noise makes by the hundred, show by their colour
        lines = [line for line in lines if (np.ptp(line, axis=0) > _LEAST_CELLS).any()]
    pieces = [piece for line in lines for piece in (np.full((1, 2), np.nan), np.asarray(line))]
    if not pieces:
        return nothing
    kept = np.concatenate(pieces[1:])
    return kept[:, 0], kept[:, 1]
