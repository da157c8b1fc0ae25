"""Plots of a claim's readings: how far inside or outside of what is allowed, and beside what was
published."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from rarefy.core.verdict import Verdict
from rarefy.report import style
from rarefy.report.matplotlib_parts import escape_dollars
from rarefy.report.static import as_png

DPI = 110
MOST_PIXELS = 1100
"""Width of the site's column."""
COLOURS = 192
ROW = 0.46
"""Inches per reading: its condition, and below it the mark."""
FAR = 10.0
"""Margins beyond this make the axis logarithmic."""
LOOKS = {
    "holds": ("o", style.BLUE, True),
    "fails": ("X", style.VERMILION, True),
    "inconclusive": ("D", style.GREY, False),
    "premise-not-met": ("s", style.GREY, False),
}
"""Marker, colour and whether it is filled, by outcome."""
HOLLOW: dict[str, Any] = {"markerfacecolor": "white"}


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


def multiverse(primaries: Sequence[Verdict], others: Sequence[Verdict]) -> bytes | None:
    """Margins over the conditions, primary readings first; None with fewer than two."""
    rows = [(v, found) for v in (*primaries, *others) if (found := margin(v)) is not None]
    if len(rows) < 2:
        return None
    ends = np.array([found for _, found in rows])
    most = float(np.abs(ends[np.isfinite(ends)]).max())
    figure, axes = _sheet([_label(verdict) for verdict, _ in rows])
    with matplotlib.rc_context(style.MATPLOTLIB):
        if most > FAR:
            axes.set_xscale("symlog", linthresh=1.0)
            axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlim(-1.2 * max(most, 1.0), 1.2 * max(most, 1.0))
        axes.axvspan(-2 * most - 2, 0, color=style.lighter(style.VERMILION, 0.9), zorder=0)
        axes.axvline(0, color=style.BLACK, linewidth=1.2)
        for place, (verdict, (value, low, high)) in enumerate(rows):
            shape, colour, filled = LOOKS.get(verdict.outcome, LOOKS["inconclusive"])
            first = verdict.role == "primary"
            # an interval without an end runs out of the plot
            span = np.clip([low, high], -2 * most, 2 * most)
            axes.plot(span, [place, place], color=colour, linewidth=2.6 if first else 1.4)
            mark = {} if filled else HOLLOW
            edge = style.BLACK if first else colour
            axes.plot([value], [place], shape, color=colour, markeredgecolor=edge, **mark,
                      markersize=10 if first else 7)  # fmt: skip
        axes.set_xlabel("distance from the edge of what is allowed,\nin tolerances (right: inside)")
        used = [word for word in LOOKS if any(v.outcome == word for v, _ in rows)]
        _legend(figure, {word.replace("-", " "): LOOKS[word] for word in used})
    return small_png(figure)


def forest(verdicts: Sequence[Verdict]) -> bytes | None:
    """Ours beside the published number, in its unit; None where none was published."""
    rows = [v for v in verdicts if v.published is not None and v.value is not None]
    if not rows:
        return None
    figure, axes = _sheet([_label(verdict) for verdict in rows])
    looks = {"published": ("D", style.BLACK, False), "ours, 95 %": ("o", style.BLUE, True)}
    with matplotlib.rc_context(style.MATPLOTLIB):
        axes.axvline(0, color=style.GREY, linewidth=1.0)
        for place, verdict in enumerate(rows):
            # the larger mark below: both are seen where the numbers agree
            axes.plot([verdict.published], [place], "D", color=style.BLACK, **HOLLOW, markersize=11)
            ends = verdict.interval or ()
            axes.plot(ends, [place] * len(ends), color=style.BLUE)
            axes.plot([verdict.value], [place], "o", color=style.BLUE, markersize=6)
        axes.set_xlabel("as the readings measure it")
        axes.margins(x=0.08)
        _legend(figure, looks)
    return small_png(figure)


def small_png(figure: Figure) -> bytes:
    """No wider than the page, of few colours, the same bytes for the same picture."""
    dpi = int(min(DPI, MOST_PIXELS / figure.get_figwidth()))
    image = Image.open(io.BytesIO(as_png(figure, dpi))).convert("RGB")
    buffer = io.BytesIO()
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _sheet(labels: Sequence[str]) -> tuple[Figure, Axes]:
    """Axes with a row per label, the first on top. Labels stand over the marks: beside them, they
    would leave a phone no room for the plot."""
    with matplotlib.rc_context(style.MATPLOTLIB):
        size = (style.PANEL_WIDTH, ROW * len(labels) + 1.3)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.set_ylim(len(labels) - 0.55, -0.85)
        axes.set_yticks([])
        for place, label in enumerate(labels):
            axes.annotate(
                escape_dollars(style.shortened(label, 68)), (0.01, place - 0.38),
                xycoords=("axes fraction", "data"), fontsize=style.FONT_POINTS - 2.5, va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
            )  # fmt: skip
    return figure, axes


def _legend(figure: Figure, looks: dict[str, tuple[str, str, bool]]) -> None:
    drawn = [
        Line2D([], [], marker=shape, color=colour, linestyle="none", **({} if filled else HOLLOW))
        for shape, colour, filled in looks.values()
    ]
    figure.legend(drawn, list(looks), loc="outside upper center", ncols=4, frameon=False)


def _label(verdict: Verdict) -> str:
    return f"{verdict.claim}: {verdict.setting}" if verdict.role == "primary" else verdict.setting
