"""Plots of a claim's readings: how far inside or outside of what is allowed, and beside what was
published."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import SymmetricalLogLocator
from PIL import Image

from rarefy.core.verdict import Verdict
from rarefy.report import style
from rarefy.report.matplotlib_parts import typeset
from rarefy.report.static import as_png

DPI = 110
MOST_PIXELS = 1100
"""Width of the site's column."""
COLOURS = 192
ROW = 0.46
"""Inches per reading: its condition, and below it the mark."""
FAR = 10.0
"""Margins beyond this make the axis logarithmic."""
Look = tuple[str, str, bool]
LOOKS: dict[str, Look] = {
    "holds": ("o", style.BLUE, True),
    "fails": ("X", style.VERMILION, True),
    "inconclusive": ("D", style.GREY, False),
    "premise-not-met": ("s", style.GREY, False),
    "not-run": ("s", style.GREY, False),
}
"""Marker, colour and whether it is filled, by outcome."""
FILLS: dict[bool, dict[str, Any]] = {True: {}, False: {"markerfacecolor": "white"}}


def margin(verdict: Verdict) -> tuple[float, float, float] | None:
    """Signed distance of value, low and high from the edge of what is allowed that is nearest to
    the value, inside being positive; None without numbers.

    Unit: half the allowed width; with one edge, its size; with an edge at 0, half the interval's
    width. That a rank correlation cannot pass 1 or -1 is no edge."""
    if verdict.value is None or verdict.allowed is None:
        return None
    value, (floor, ceiling) = verdict.value, verdict.allowed
    low, high = verdict.interval or (value, value)
    if verdict.p is not None:
        floor, ceiling = -math.inf if floor == -1 else floor, math.inf if ceiling == 1 else ceiling
    edges = [(edge, sign) for edge, sign in ((floor, 1.0), (ceiling, -1.0)) if math.isfinite(edge)]
    if not edges:
        return None
    edge, sign = min(edges, key=lambda one: one[1] * (value - one[0]))
    unit = (ceiling - floor) / 2 if len(edges) == 2 else 0.0
    unit = unit or abs(edge) or (high - low) / 2
    if not 0 < unit < math.inf:
        return None
    ends = sorted(sign * (end - edge) / unit for end in (low, high))
    return sign * (value - edge) / unit, ends[0], ends[1]


def multiverse(verdicts: Sequence[Verdict]) -> bytes | None:
    """Margins over the conditions; None with fewer than two."""
    rows = [(verdict, found) for verdict in verdicts if (found := margin(verdict)) is not None]
    if len(rows) < 2:
        return None
    ends = np.array([found for _, found in rows])
    most = max(1.0, float(np.abs(ends[np.isfinite(ends)]).max()))
    words = [word for word in LOOKS if any(verdict.outcome == word for verdict, _ in rows)]
    with matplotlib.rc_context(style.MATPLOTLIB):
        figure, axes = _sheet([v for v, _ in rows], {word: LOOKS[word] for word in words})
        if most > FAR:
            axes.set_xscale("symlog", linthresh=1.0)
            places = SymmetricalLogLocator(base=10, linthresh=1.0)
            places.numticks = 6  # more names would run into each other
            axes.xaxis.set_major_locator(places)
            axes.xaxis.set_major_formatter("{x:g}")
        reach = (2 if most > FAR else 1.2) * most  # a mark is not cut at the edge
        axes.set_xlim(-reach, reach)
        axes.axvspan(-2 * most, 0, color=style.lighter(style.VERMILION, 0.9), zorder=0)
        axes.axvline(0, color=style.BLACK, linewidth=1.2)
        for place, (verdict, (value, low, high)) in enumerate(rows):
            shape, colour, filled = LOOKS[verdict.outcome]
            first = verdict.role == "primary"
            edge = style.BLACK if first else colour
            # an interval without an end runs out of the plot
            span = np.clip([low, high], -2 * most, 2 * most)
            axes.plot(span, [place, place], color=colour, linewidth=2.6 if first else 1.4)
            axes.plot([value], [place], shape, color=colour, markeredgecolor=edge,
                      markersize=10 if first else 7, **FILLS[filled])  # fmt: skip
        axes.set_xlabel("distance from the edge of what is allowed,\nin tolerances (right: inside)")
    return small_png(figure)


def forest(verdicts: Sequence[Verdict]) -> bytes | None:
    """Ours beside the published number, in its unit; None where none was published."""
    rows = [v for v in verdicts if v.published is not None and v.value is not None]
    if not rows:
        return None
    looks = {"published": ("D", style.BLACK, False), "ours, 95 %": ("o", style.BLUE, True)}
    with matplotlib.rc_context(style.MATPLOTLIB):
        figure, axes = _sheet(rows, looks)
        axes.axvline(0, color=style.GREY, linewidth=1.0)
        for place, v in enumerate(rows):
            # the larger mark below: both are seen where the numbers agree
            theirs, ours = np.array([v.published]), np.array([v.value])
            axes.plot(theirs, [place], "D", color=style.BLACK, markersize=11, **FILLS[False])
            axes.plot(v.interval or ours, [place] * len(v.interval or ours), color=style.BLUE)
            axes.plot(ours, [place], "o", color=style.BLUE, markersize=6)
        axes.set_xlabel("as the readings measure it")
    return small_png(figure)


def small_png(figure: Figure) -> bytes:
    """No wider than the page, of few colours, the same bytes for the same picture."""
    dpi = int(min(DPI, MOST_PIXELS / figure.get_figwidth()))
    image = Image.open(io.BytesIO(as_png(figure, dpi))).convert("RGB")
    buffer = io.BytesIO()
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _sheet(rows: Sequence[Verdict], looks: dict[str, Look]) -> tuple[Figure, Axes]:
    """Axes with a row per reading, the first on top, and a legend. Conditions stand over the marks:
    beside them, they would leave a phone no room for the plot."""
    figure = Figure(figsize=(style.PANEL_WIDTH, ROW * len(rows) + 1.3), layout="constrained")
    axes = figure.subplots()
    axes.set_ylim(len(rows) - 0.55, -0.85)
    axes.set_yticks([])
    shared = os.path.commonprefix([v.setting for v in rows]) if len(rows) > 1 else ""
    skipped = shared.rfind(", ") + 2 if ", " in shared else 0
    for place, verdict in enumerate(rows):
        label = f"{verdict.claim}: " * (verdict.role == "primary") + verdict.setting[skipped:]
        axes.annotate(
            typeset(style.shortened(label, 66)), (0.01, place - 0.38),
            xycoords=("axes fraction", "data"), fontsize=style.FONT_POINTS - 2.5, va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
        )  # fmt: skip
    drawn = [
        Line2D([], [], marker=shape, color=colour, linestyle="none", **FILLS[filled])
        for shape, colour, filled in looks.values()
    ]
    names = [word.replace("-", " ") for word in looks]
    figure.legend(drawn, names, loc="outside upper center", ncols=4, frameon=False)
    return figure, axes
