"""Pictures drawn by matplotlib: for print, for README files, and where scripts are off.

``Figure`` objects only; pyplot keeps figures alive and is not safe to share.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

from rarefy.core.picture import HeatMap, Lines, Picture
from rarefy.report import style
from rarefy.report.shaping import (
    Drawn,
    colour_limits,
    grows_upward,
    heat_values,
    own_limits,
    shape,
    tick_labels,
)

Limits = tuple[float, float] | None
_VECTOR_CELLS = 2500  # a heat map with more cells is embedded as an image
_COLUMNS = 3  # panels side by side before a new row starts (four: two by two)


def draw_panel(panel: Lines | HeatMap, limits: Limits = None) -> Figure:
    """One panel as a figure of its own, without its title (the page has that as text)."""
    with matplotlib.rc_context(style.MATPLOTLIB):
        figure = Figure(figsize=(style.PANEL_WIDTH, _height(panel)), layout="constrained")
        _fill(figure, panel, limits)
        return figure


def draw_picture(picture: Picture) -> Figure:
    """All panels of a picture on one sheet, with titles."""
    panels = list(picture.panels)
    columns = 2 if len(panels) == 4 else max(1, min(_COLUMNS, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    heights = [
        max((_height(panel) for panel in panels[row * columns : (row + 1) * columns]), default=1.0)
        for row in range(rows)
    ]
    limits = colour_limits(picture)
    with matplotlib.rc_context(style.MATPLOTLIB):
        figure = Figure(
            figsize=(style.PANEL_WIDTH * columns, sum(heights) + 0.5), layout="constrained"
        )
        figure.suptitle(_plain(picture.title), fontsize=style.FONT_POINTS + 2)
        if not panels:
            return figure
        grid = np.asarray(figure.subfigures(rows, columns, squeeze=False, height_ratios=heights))
        for place, panel in zip(grid.ravel(), panels, strict=False):
            scale = limits.get(panel.colour_label) if isinstance(panel, HeatMap) else None
            axes = _fill(place, panel, scale)
            if panel.title:
                raised = _mark_rows(panel) if isinstance(panel, Lines) else 0
                title = "\n".join(style.wrapped(_plain(panel.title), 46))
                axes.set_title(title, loc="left", pad=6 + 16 * raised)
        return figure


def as_svg(figure: Figure) -> bytes:
    """Vector graphics with letters as shapes: the same on a machine without our font."""
    return _saved(figure, format="svg", metadata={"Date": None, "Creator": None})


def as_png(figure: Figure, dpi: int = 150) -> bytes:
    return _saved(figure, format="png", dpi=dpi, metadata={"Software": None})


def as_small_png(figure: Figure, dpi: int = 100, colours: int = 48) -> bytes:
    """A bitmap of few colours: a fifth of the plain one, and hard to tell from it."""
    image = Image.open(io.BytesIO(as_png(figure, dpi))).convert("RGB")
    buffer = io.BytesIO()
    image.quantize(colours, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _saved(figure: Figure, **options: object) -> bytes:
    buffer = io.BytesIO()
    with matplotlib.rc_context(style.MATPLOTLIB):
        figure.savefig(buffer, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def _height(panel: Lines | HeatMap) -> float:
    if isinstance(panel, Lines):
        return style.LINES_HEIGHT + 0.2 * max(0, len(panel.curves) - 4) / 2
    # a row a neuron must be legible; a fine grid is one surface, as high as a plot is
    return max(2.8, 1.3 + 0.24 * len(panel.y)) if len(panel.y) <= style.NAMED_ROWS else 4.4


def _plain(text: str, most: int = 200) -> str:
    # a dollar sign would start a formula; a label may hold any text
    return style.shortened(text, most).replace("$", r"\$")


def _fill(place: Figure | SubFigure, panel: Lines | HeatMap, limits: Limits) -> Axes:
    axes = place.subplots()
    if isinstance(panel, Lines):
        _lines(place, axes, panel)
    else:
        _heat_map(place, axes, panel, limits)
    axes.set_xlabel("\n".join(style.wrapped(_plain(panel.x_label), 46)))
    axes.set_ylabel("\n".join(style.wrapped(_plain(panel.y_label), 34)))
    return axes


# ---------------------------------------------------------------------------------- lines


def _lines(place: Figure | SubFigure, axes: Axes, panel: Lines) -> None:
    shaped = shape(panel)
    if shaped.empty:
        _say(axes, "no values to show")
        return
    if panel.x_log:
        _logarithmic(axes, "x", shaped.x_extent())
    if panel.y_log:
        _logarithmic(axes, "y", shaped.y_extent())
    drawn = []
    for curve in shaped.curves:
        for x, low, high in curve.band():
            axes.fill_between(x, low, high, color=curve.look.colour, alpha=0.2, linewidth=0)
        symbol = style.SYMBOLS[curve.look.symbol][0]
        points_only = curve.look.style == "points"
        (line,) = axes.plot(
            curve.x,
            curve.y,
            color=curve.look.colour,
            linestyle="none" if points_only else curve.look.style,
            marker=symbol if curve.marked else "none",
        )
        drawn.append(line)
    # set limits stay what the direct labels were placed by
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    _marks(axes, panel)
    if not _direct_labels(axes, shaped.curves):
        # matplotlib leaves out labels that begin with an underscore
        names = [f" {c.label}" if c.label.startswith("_") else c.label for c in shaped.curves]
        labels = [_plain(name, 48) for name in names]
        columns = max(1, min(4, 56 // (max(map(len, labels)) + 6)))
        place.legend(drawn, labels, loc="outside lower center", ncols=columns, frameon=False)


def _logarithmic(axes: Axes, which: str, extent: tuple[float, float]) -> None:
    axis: Axis
    if which == "x":
        axes.set_xscale("log")
        axis = axes.xaxis
    else:
        axes.set_yscale("log")
        axis = axes.yaxis
    decades = np.log10(extent[1] / extent[0])
    if decades < 2.5:
        # powers of ten alone would leave the axis almost bare
        digits = range(1, 10) if decades < 0.8 else (1, 2, 5)
        axis.set_major_locator(LogLocator(subs=[float(digit) for digit in digits]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _fractions(axes: Axes, points: Sequence[tuple[float, float]]) -> np.ndarray:
    """Data points in shares of the axes' width and height."""
    screen = axes.transData.transform(np.asarray(points, dtype=np.float64).reshape(-1, 2))
    return np.asarray(axes.transAxes.inverted().transform(screen))


def _mark_rows(panel: Lines) -> int:
    return 1 + min(len(panel.marks), 2) // 2 if panel.marks else 0


def _marks(axes: Axes, panel: Lines) -> None:
    marks = shape(panel).marks
    if not marks:
        return
    axes.set_xlim(
        min(axes.get_xlim()[0], *(x for x, _ in marks)),
        max(axes.get_xlim()[1], *(x for x, _ in marks)),
    )
    middle = axes.get_ylim()[0]
    at = _fractions(axes, [(x, middle) for x, _ in marks])[:, 0]
    longest = min(20, max(len(label) for _, label in marks))
    rows = style.stagger(at, 0.024 * longest + 0.03)
    for (x, label), row in zip(marks, rows, strict=True):
        axes.axvline(x, color="#555555", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(
            _plain(label, 20),
            (x, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3 + 14 * row),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=style.FONT_POINTS - 1,
            color="#333333",
        )


def _direct_labels(axes: Axes, curves: Sequence[Drawn]) -> bool:
    """Name few curves where they end, if the names fit there; False: a legend is needed."""
    if len(curves) > 4 or any(len(curve.label) > 22 for curve in curves):
        return False
    ends = []
    for curve in curves:
        there = np.flatnonzero(np.isfinite(curve.x) & np.isfinite(curve.y))
        if not there.size:
            return False
        last = there[np.argmax(curve.x[there])]
        ends.append((float(curve.x[last]), float(curve.y[last])))
    at = _fractions(axes, ends)
    if (at[:, 0] < 0.85).any():
        return False
    order = np.argsort(at[:, 1])
    heights = at[order, 1].copy()
    gap = 0.085
    for index in range(1, len(heights)):
        heights[index] = max(heights[index], heights[index - 1] + gap)
    heights -= max(0.0, heights[-1] - 1.0)
    if len(heights) > 1 and (np.diff(heights) < gap - 1e-9).any():
        return False
    if (np.abs(heights - at[order, 1]) > 0.1).any():
        return False
    for index, height in zip(order, heights, strict=True):
        axes.text(
            1.02,
            height,
            _plain(curves[index].label),
            transform=axes.transAxes,
            va="center",
            color=style.readable(curves[index].look.colour),
        )
    return True


# ---------------------------------------------------------------------------------- heat maps


def _heat_map(place: Figure | SubFigure, axes: Axes, panel: HeatMap, limits: Limits) -> None:
    values = heat_values(panel)
    axes.grid(False)
    if not np.isfinite(values).any():
        _say(axes, "no values to show")
        return
    low, high = limits or own_limits(panel)
    colours = matplotlib.colormaps[style.colour_map(panel.signed)].with_extremes(bad=style.MISSING)
    image = axes.pcolormesh(
        np.ma.masked_invalid(values),
        cmap=colours,
        vmin=low,
        vmax=high,
        rasterized=values.size > _VECTOR_CELLS,
        edgecolors="face",  # or viewers show hairlines between cells
        linewidth=0.3,
    )
    _label_cells(axes.xaxis, tick_labels(panel.x), across=True)
    _label_cells(axes.yaxis, tick_labels(panel.y), across=False)
    if not grows_upward(panel.y):
        axes.invert_yaxis()
    for row, column, text in panel.notes:
        axes.text(
            column + 0.5,
            row + 0.5,
            _plain(text, 8),
            ha="center",
            va="center",
            fontsize=style.FONT_POINTS - 2,
            color=style.text_on_cell(values[row, column], low, high, panel.signed),
        )
    bar = place.colorbar(image, ax=axes, pad=0.02, aspect=25)
    bar.set_label("\n".join(style.wrapped(_plain(panel.colour_label), 34)))
    bar.outline.set_visible(False)


def _label_cells(axis: Axis, labels: Sequence[str], across: bool) -> None:
    """Ticks at cell centres: all labels while they fit, else every so many."""
    longest = min(16, max((len(label) for label in labels), default=1))
    rows = style.NAMED_ROWS if len(labels) <= style.NAMED_ROWS else 12
    room = 52 // (longest + 2) if across else rows
    every = max(1, -(-len(labels) // max(room, 1)))
    axis.set_ticks(
        np.arange(0, len(labels), every) + 0.5, labels=[_plain(t, 16) for t in labels[::every]]
    )
    axis.set_tick_params(length=0)


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#555555")
    axes.set_xticks([])
    axes.set_yticks([])
