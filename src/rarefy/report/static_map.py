"""Heat maps drawn by matplotlib, with the curves and level lines that lie over them."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patheffects import Normal, Stroke

from rarefy.core.picture import Curve, HeatMap
from rarefy.report import style
from rarefy.report.matplotlib_parts import (
    Limits,
    Place,
    legend,
    typeset,
    typeset_lines,
    write_message,
)
from rarefy.report.overlay import overlay
from rarefy.report.panel_data import grows_upward, heat_values, own_limits, shown_cells, tick_labels


def heat_map(place: Place, axes: Axes, panel: HeatMap, limits: Limits) -> None:
    values = heat_values(panel)
    axes.grid(False)
    if not np.isfinite(values).any():
        write_message(axes, "no values to show")
        return
    low, high = limits or own_limits(panel)
    colours = matplotlib.colormaps[style.colour_map(panel.signed)].with_extremes(bad=style.MISSING)
    image = axes.pcolormesh(
        np.ma.masked_invalid(values),
        cmap=colours,
        vmin=low,
        vmax=high,
        rasterized=values.size > style.FINE_CELLS,
        edgecolors="face",  # or viewers show hairlines between cells
        linewidth=0.3,
    )
    _label_cells(axes.xaxis, panel.x, across=True)
    _label_cells(axes.yaxis, panel.y, across=False)
    axes.set_xlim(0, len(panel.x))
    axes.set_ylim(0, len(panel.y))
    if not grows_upward(panel.y, bool(panel.curves)):
        axes.invert_yaxis()
    _over(place, axes, panel)
    for row, column, text in panel.notes:
        axes.text(
            column + 0.5,
            row + 0.5,
            typeset(text, 8),
            ha="center",
            va="center",
            fontsize=style.FONT_POINTS - 2,
            color=style.text_on_cell(values[row, column], low, high, panel.signed),
        )
    bar = place.colorbar(image, ax=axes, pad=0.02, aspect=25)
    bar.set_label(typeset_lines(panel.colour_label, 34))
    bar.outline.set_visible(False)


def _over(place: Place, axes: Axes, panel: HeatMap) -> None:
    """Curves and level lines over the map, each in a white outline."""
    lines, drawn = overlay(panel), []
    for line in lines:
        points_only = line.look.style == "points"
        width, halo = style.LEVEL_WIDTHS if line.thin else style.OVER_WIDTHS
        (shown,) = axes.plot(
            line.x + 0.5,
            line.y + 0.5,
            color=line.look.colour,
            linestyle=line.look.line_style,
            linewidth=width,
            marker=style.SYMBOLS[line.look.symbol][0] if points_only else "none",
            path_effects=[Stroke(linewidth=width + halo, foreground=style.HALO), Normal()],
        )
        drawn.append(shown)
    if lines:
        legend(place, drawn, [line.label for line in lines])


def _label_cells(axis: Axis, cells: Sequence[object], across: bool) -> None:
    """Ticks at cell centres."""
    labels = tick_labels(cells)
    longest = min(16, max((len(label) for label in labels), default=1))
    rows = style.NAMED_ROWS if len(labels) <= style.NAMED_ROWS else 12
    shown = shown_cells(cells, max(1, 52 // (longest + 2)) if across else rows)
    axis.set_ticks(np.array(shown) + 0.5, labels=[typeset(labels[cell], 16) for cell in shown])
    axis.set_tick_params(length=0)
    if across and len(shown) * (longest + 2) > 52:
        axis.set_tick_params(labelrotation=45)


def map_colours(panel: HeatMap) -> list[int]:
    """Red, green, blue and again: the map's own colours, those of its curves, greys of letters."""
    steps = matplotlib.colormaps[style.colour_map(panel.signed)](np.linspace(0, 1, 40))[:, :3]
    greys = [(grey, grey, grey) for grey in np.linspace(0, 1, 8)]
    every = [*map(tuple, steps), *greys, style.channels(style.MISSING)]
    return [
        *(round(255 * part) for colour in every for part in colour),
        *curve_colours(panel.curves),
    ]


def curve_colours(curves: Sequence[Curve]) -> list[int]:
    """Red, green, blue and again: of curves, their paler edges and the words beside them."""
    found = []
    for look in style.looks(curves):
        shades = (look.colour, style.lighter(look.colour, 0.5), style.readable(look.colour))
        found += [round(255 * part) for shade in shades for part in style.channels(shade)]
    return found
