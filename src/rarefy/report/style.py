"""How figures look: colours by role, dashes, symbols, sizes. The only place that knows.

Colours are those of Okabe and Ito (2008), told apart by people with any colour vision; their
yellow is left out because it vanishes on white. No meaning hangs on colour alone: measured curves
differ in symbol as well, and those of one colour in lightness and dash; a formula has no symbols.
"""

from __future__ import annotations

import colorsys
import math
import textwrap
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from rarefy.core.picture import Curve

BLACK, GREY = "#000000", "#6e6e6e"
ORANGE, SKY, GREEN = "#e69f00", "#56b4e9", "#009e73"
BLUE, VERMILION, PURPLE = "#0072b2", "#d55e00", "#cc79a7"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)

ROLES = {
    "majority": BLUE,
    "minority": VERMILION,
    "noise": GREY,
    "theory": BLACK,
    "bound": BLACK,
    "lucky": GREEN,
    "ordinary": SKY,
    "mixed": PURPLE,
    "loss": PURPLE,
    "bias": ORANGE,
    "baseline": GREY,
}
"""The same word has the same colour in every picture; black means ink: dark on light, light on
dark."""

OUTCOMES = {"holds": "✓", "fails": "✗", "inconclusive": "?", "premise-not-met": "∅", "not-run": "–"}
"""The sign in front of an outcome, so that it can be read without its colour."""

COLOUR_MAP = "viridis"
SIGNED_COLOUR_MAP = "PuOr_r"  # 0 in the middle; told apart by colour-blind readers too
MISSING = "#d9d9d9"  # a heat map's cell without a value
MARKED_POINTS = 25  # a curve of at most so many points shows each of them
SYMBOLS = (
    ("o", "circle"),
    ("s", "square"),
    ("^", "triangle-up"),
    ("D", "diamond"),
    ("v", "triangle-down"),
    ("P", "cross"),
    ("*", "star"),
    ("X", "x"),
)
"""Each symbol's name in matplotlib and in plotly."""
MEASURED = ("solid", "longdash", "dashdot", "longdashdot")
"""How measured curves of one colour are drawn, by turn."""
STROKES: dict[str, tuple[int, ...]] = {
    "solid": (),
    "points": (),
    "dashed": (9, 9),
    "dotted": (3, 3),
    "longdash": (14, 4),
    "dashdot": (9, 3, 3, 3),
    "longdashdot": (16, 3, 3, 3),
}
"""Each curve style as pixels of line and gap."""

HALO = "#ffffff"
"""What surrounds a line over a heat map, so that it can be seen on any of its colours."""
OVER_WIDTHS, LEVEL_WIDTHS = (2.0, 2.2), (1.0, 1.2)
"""How wide a curve over a heat map and a level line are, and how much wider what surrounds them."""
NAMED_ROWS = 30  # a heat map with more rows names only some of them
FINE_CELLS = 2500  # a heat map with more cells is one surface, drawn as an image
PANEL_WIDTH = 5.0  # inches; 480 CSS pixels, so that 11 pt is still 11 px on a 360 px phone
LINES_HEIGHT = 3.5
LINE_WIDTH, MARKER_POINTS = 1.9, 5.0
WIDER = 2.4
"""How much wider a curve is per curve that lies on it, so that it still shows."""
FONT_POINTS = 11.0
FONT_PIXELS = 13
MATPLOTLIB: dict[Any, Any] = {
    "font.size": FONT_POINTS,
    "font.family": "DejaVu Sans",
    "axes.titlesize": FONT_POINTS,
    "axes.labelsize": FONT_POINTS,
    "xtick.labelsize": FONT_POINTS - 1,
    "ytick.labelsize": FONT_POINTS - 1,
    "legend.fontsize": FONT_POINTS - 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.8,
    "lines.linewidth": LINE_WIDTH,
    "lines.markersize": MARKER_POINTS,
    "figure.facecolor": "white",
    "svg.hashsalt": "rarefy",  # the same picture gives the same bytes
}


@dataclass(frozen=True)
class Look:
    """How one curve is drawn; ``style`` is one of STROKES, ``symbol`` indexes SYMBOLS, ``ink``
    follows the text's colour."""

    colour: str
    style: str
    symbol: int
    ink: bool

    @property
    def dash(self) -> str:
        """As plotly spells it. (It would lengthen dashes that it knows by name for wide lines.)"""
        return ",".join(f"{part}px" for part in STROKES[self.style]) or "solid"

    @property
    def line_style(self) -> Any:
        """As matplotlib spells it, in units of the line's width."""
        if self.style == "points":
            return "none"
        return (0, tuple(part / 2.6 for part in STROKES[self.style])) if self.dashed else "solid"

    @property
    def dashed(self) -> bool:
        return bool(STROKES[self.style])


def looks(curves: Sequence[Curve]) -> list[Look]:
    """A look for every curve of a panel: colour by role, a symbol of its own if it is measured,
    lightness and dash by turn among those of one colour."""
    named = _role_colours([curve.role for curve in curves if curve.role])
    spare = [colour for colour in PALETTE if colour not in named.values()] or list(PALETTE)
    colours, unnamed = [], 0
    for curve in curves:
        if curve.role:
            colours.append(named[curve.role])
        else:
            colours.append(spare[unnamed % len(spare)])
            unnamed += 1
    # a dashed theory curve beside its solid measurement is distinct already: tint by turn only
    # among curves that share colour and style
    alike = Counter(zip(colours, (curve.style for curve in curves), strict=True))
    seen: Counter[tuple[str, str]] = Counter()
    symbols = 0
    result = []
    for curve, colour in zip(curves, colours, strict=True):
        turn, of = seen[colour, curve.style], alike[colour, curve.style]
        seen[colour, curve.style] += 1
        tinted = lighter(colour, 0.55 * turn / max(of - 1, 1)) if of > 1 else colour
        drawn = MEASURED[turn % len(MEASURED)] if curve.style == "solid" else curve.style
        result.append(Look(tinted, drawn, symbols % len(SYMBOLS), tinted == BLACK))
        symbols += curve.style in ("solid", "points")
    return result


def _role_colours(roles: Sequence[str]) -> dict[str, str]:
    """A colour for each role of a panel. A word we do not know has a colour of its own in all
    pictures, by its letters; where another curve has that already, it gets the next free one."""
    found = {role: ROLES[role] for role in roles if role in ROLES}
    for role in roles:
        if role not in found:
            first = zlib.crc32(role.encode()) % len(PALETTE)
            turned = PALETTE[first:] + PALETTE[:first]
            free = [colour for colour in turned if colour not in found.values()]
            found[role] = (free or turned)[0]
    return found


def channels(colour: str) -> tuple[float, float, float]:
    """Red, green, blue in 0..1 of ``#rrggbb``."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _spelled(red: float, green: float, blue: float) -> str:
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in (red, green, blue))


def lighter(colour: str, share: float) -> str:
    """The colour mixed with white."""
    red, green, blue = (channel + share * (1 - channel) for channel in channels(colour))
    return _spelled(red, green, blue)


def readable(colour: str) -> str:
    """The colour, dark enough for text on white."""
    hue, light, saturation = colorsys.rgb_to_hls(*channels(colour))
    return _spelled(*colorsys.hls_to_rgb(hue, min(light, 0.32), saturation))


def see_through(colour: str, opacity: float = 0.2) -> str:
    red, green, blue = (round(255 * channel) for channel in channels(colour))
    return f"rgba({red},{green},{blue},{opacity:g})"


def text_on(rgb: Sequence[float]) -> str:
    """Black or white, whichever reads better on this background (WCAG relative luminance)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    return "black" if luminance > 0.179 else "white"


def colour_map(signed: bool) -> str:
    return SIGNED_COLOUR_MAP if signed else COLOUR_MAP


def colour_steps(signed: bool, steps: int = 17) -> list[tuple[float, str]]:
    """A colour map as (place in 0..1, colour), for drawings that do not know it by name."""
    places = np.linspace(0, 1, steps)
    colours = matplotlib.colormaps[colour_map(signed)](places)[:, :3] * 255
    return [
        (float(p), f"rgb({r:.0f},{g:.0f},{b:.0f})")
        for p, (r, g, b) in zip(places, colours, strict=True)
    ]


def text_on_cell(value: float, low: float, high: float, signed: bool = False) -> str:
    """Black or white for a note in a heat map's cell."""
    if not math.isfinite(value):
        return text_on(channels(MISSING))
    place = (value - low) / (high - low or 1.0)
    return text_on(matplotlib.colormaps[colour_map(signed)](place))


def number(value: object, digits: int = 4) -> str:
    """A value as tick label or table cell, without trailing zeros."""
    if isinstance(value, float | np.floating):
        return "no value" if math.isnan(value) else f"{value:.{digits}g}"
    return str(value)


def shortened(label: str, most: int) -> str:
    """Room for text is limited in a drawing: an overlong label would push the axes away."""
    return label if len(label) <= most else label[: most - 1] + "…"


def wrapped(label: str, width: int = 38) -> list[str]:
    return textwrap.wrap(label, width, max_lines=3, placeholder=" …") or [""]


def stagger(fractions: NDArray[np.float64], gap: float) -> list[int]:
    """Rows for labels at these positions along an axis, so that close ones do not overlap."""
    ends: list[float] = []
    rows = [0] * len(fractions)
    for index in np.argsort(fractions, kind="stable"):
        free = next((row for row, end in enumerate(ends) if fractions[index] >= end), len(ends))
        ends[free : free + 1] = [float(fractions[index]) + gap]
        rows[index] = free
    return rows
