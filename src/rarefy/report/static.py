"""Pictures drawn by matplotlib: for print, for README files, and where scripts are off.

``Figure`` objects only; pyplot keeps figures alive and is not safe to share.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

from rarefy.core.picture import HeatMap, Lines, Picture
from rarefy.report import style
from rarefy.report.matplotlib_parts import (
    Limits,
    Place,
    legend,
    typeset,
    typeset_lines,
    write_message,
)
from rarefy.report.panel_data import CurveData, colour_limits, prepare_lines
from rarefy.report.static_map import curve_colours, heat_map, map_colours

COLOURS = 48
"""Of a small bitmap, beside those of its curves."""
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
        figure.suptitle(typeset(picture.title), fontsize=style.FONT_POINTS + 2)
        if not panels:
            return figure
        grid = np.asarray(figure.subfigures(rows, columns, squeeze=False, height_ratios=heights))
        for place, panel in zip(grid.ravel(), panels, strict=False):
            scale = limits.get(panel.colour_label) if isinstance(panel, HeatMap) else None
            axes = _fill(place, panel, scale)
            if panel.title:
                raised = _mark_rows(panel) if isinstance(panel, Lines) else 0
                title = typeset_lines(panel.title, 46)
                axes.set_title(title, loc="left", pad=6 + 16 * raised)
        return figure


def as_svg(figure: Figure) -> bytes:
    """Vector graphics with letters as shapes: the same on a machine without our font."""
    return _saved(FigureCanvasSVG(figure).print_svg, {"Date": None, "Creator": None})


def as_png(figure: Figure, dpi: int = 150) -> bytes:
    before = figure.dpi
    figure.set_dpi(dpi)
    try:
        return _saved(FigureCanvasAgg(figure).print_png, {"Software": None})
    finally:
        figure.set_dpi(before)


def as_small_webp(figure: Figure, panel: Lines | HeatMap, dpi: int = 100) -> bytes:
    """A bitmap of few colours: a sixth of the plain one, and hard to tell from it."""
    image = Image.open(io.BytesIO(as_png(figure, dpi))).convert("RGB")
    # chosen by how often they occur alone, colours of the rarest cells and of thin curves would go,
    # and two curves would have one colour between them
    if isinstance(panel, Lines):
        often = image.quantize(COLOURS, dither=Image.Dither.NONE).getpalette() or []
        colours = [*often[: 3 * COLOURS], *curve_colours(panel.curves)]
    else:
        colours = map_colours(panel)
    buffer = io.BytesIO()
    _with_colours(image, colours).save(buffer, "webp", lossless=True, quality=80, method=4)
    return buffer.getvalue()


def _with_colours(image: Image.Image, colours: Sequence[int]) -> Image.Image:
    """Every pixel in the nearest of these (red, green, blue and again). Pillow's own search is
    coarse: it takes a neighbour for a colour that is there."""
    few = np.reshape(np.asarray(colours, dtype=np.int64), (-1, 3))
    pixels = np.asarray(image, dtype=np.int64)
    packed = (pixels[..., 0] << 16) | (pixels[..., 1] << 8) | pixels[..., 2]
    there, place = np.unique(packed, return_inverse=True)
    parts = np.stack([there >> 16, (there >> 8) & 255, there & 255], axis=1)
    nearest = ((parts[:, None] - few) ** 2).sum(axis=2).argmin(axis=1)
    return Image.fromarray(few[nearest][place.reshape(pixels.shape[:2])].astype(np.uint8))


def _saved(write: Callable[..., object], metadata: dict[str, None]) -> bytes:
    """``Figure.savefig`` gives the same bytes, and draws it twice: the layout is done while it is
    drawn."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(style.MATPLOTLIB):
        write(buffer, metadata=metadata)
    return buffer.getvalue()


def _height(panel: Lines | HeatMap) -> float:
    if isinstance(panel, Lines):
        return style.LINES_HEIGHT + 0.2 * max(0, len(panel.curves) - 4) / 2
    # a row per neuron must be legible; a fine grid is one surface, as high as a plot is
    own = max(2.8, 1.3 + 0.24 * len(panel.y)) if len(panel.y) <= style.NAMED_ROWS else 4.4
    return own + 0.2 * (len(panel.curves) + len(panel.levels))


def _fill(place: Place, panel: Lines | HeatMap, limits: Limits) -> Axes:
    axes = place.subplots()
    if isinstance(panel, Lines):
        _lines(place, axes, panel)
    else:
        heat_map(place, axes, panel, limits)
    axes.set_xlabel(typeset_lines(panel.x_label, 46))
    axes.set_ylabel(typeset_lines(panel.y_label, 34))
    return axes


# ---------------------------------------------------------------------------------- lines


def _lines(place: Place, axes: Axes, panel: Lines) -> None:
    shaped = prepare_lines(panel)
    if shaped.empty:
        write_message(axes, "no values to show")
        return
    if panel.x_log:
        _logarithmic(axes, "x", shaped.x_extent())
    if panel.y_log:
        _logarithmic(axes, "y", shaped.y_extent())
    drawn = []
    for curve in shaped.curves:
        for x, low, high in curve.band():
            if len(x) == 1:  # an area would have no width
                axes.vlines(x, low, high, color=curve.look.colour, alpha=0.5)
                continue
            axes.fill_between(x, low, high, color=curve.look.colour, alpha=0.2, linewidth=0)
        (line,) = axes.plot(
            curve.x,
            curve.y,
            color=curve.look.colour,
            linestyle=curve.look.line_style,
            linewidth=style.LINE_WIDTH + style.WIDER * curve.covered,
            marker=style.SYMBOLS[curve.look.symbol][0] if curve.marked else "none",
            markersize=style.MARKER_POINTS + style.WIDER * curve.covered,
            # symbols of neighbours stand apart where curves do not
            markevery=(0.04 * (curve.look.symbol % 4), 0.16) if curve.sparse else None,
        )
        drawn.append(line)
    # set limits stay what the direct labels were placed by
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    _marks(axes, panel)
    if not _direct_labels(axes, shaped.curves):
        legend(place, drawn, [curve.label for curve in shaped.curves])


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
    marks = prepare_lines(panel).marks
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
            typeset(label, 20),
            (x, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3 + 14 * row),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=style.FONT_POINTS - 1,
            color="#333333",
        )


def _direct_labels(axes: Axes, curves: Sequence[CurveData]) -> bool:
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
            typeset(curves[index].label),
            transform=axes.transAxes,
            va="center",
            color=style.readable(curves[index].look.colour),
        )
    return True
