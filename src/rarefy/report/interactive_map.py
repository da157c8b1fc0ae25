"""Heat maps as plotly figures, with the curves and level lines that lie over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rarefy.core.picture import HeatMap
from rarefy.report import style
from rarefy.report.overlay import OverlayLine, overlay
from rarefy.report.panel_data import grows_upward, heat_values, own_limits, shown_cells, tick_labels
from rarefy.report.plotly_parts import (
    FORMAT,
    LEGEND,
    Figure,
    escape,
    no_values,
    numbers,
    plain_layout,
    title,
    typeset,
)


def heat_map(panel: HeatMap, limits: tuple[float, float] | None) -> Figure:
    values = heat_values(panel)
    rows = len(panel.y)
    layout = plain_layout(panel, max(300, 110 + 22 * rows) if rows <= style.NAMED_ROWS else 420)
    if not np.isfinite(values).any():
        return no_values(layout)
    low, high = limits or own_limits(panel)
    trace: Figure = {
        "type": "heatmap",
        "x": _distinct([escape(label) for label in tick_labels(panel.x)]),
        "y": _distinct([escape(label) for label in tick_labels(panel.y)]),
        "z": [numbers(row, _digits(values)) for row in values],
        "zmin": low,
        "zmax": high,
        "colorscale": style.colour_steps(panel.signed),
        "colorbar": {
            "title": title(panel.colour_label, 36) | {"side": "right"},
            "thickness": 12,
            "outlinewidth": 0,
            "exponentformat": "power",
        },
        "hovertemplate": f"{typeset(panel.x_label)}: %{{x}}<br>{typeset(panel.y_label)}: %{{y}}"
        f"<br><b>{typeset(panel.colour_label)}: %{{z:{FORMAT}}}</b><extra></extra>",
        "hoverongaps": False,
    }
    layout["annotations"] = [
        {
            "x": trace["x"][column],
            "y": trace["y"][row],
            "text": escape(text),
            "showarrow": False,
            "captureevents": False,
            "font": {
                "size": 11,
                "color": style.text_on_cell(values[row, column], low, high, panel.signed),
            },
        }
        for row, column, text in panel.notes
    ]
    room = max(4, 36 // (max(map(len, trace["x"])) + 2))
    layout["xaxis"] |= _category(panel.x, trace["x"], room)
    layout["yaxis"] |= _category(panel.y, trace["y"], 12 if rows > style.NAMED_ROWS else rows)
    upward = grows_upward(panel.y, bool(panel.curves))
    if not upward:
        layout["yaxis"]["autorange"] = "reversed"
    layout["plot_bgcolor"] = style.MISSING
    return {"data": [trace, *_over(layout, panel, upward)], "layout": layout}


def _category(labels: Sequence[object], names: Sequence[str], room: int) -> Figure:
    """An axis of named cells. (Left to itself, plotly leaves out names here and there.)"""
    shown = [names[cell] for cell in shown_cells(labels, room)]
    axis: Figure = {"type": "category", "showgrid": False, "ticks": ""}
    return axis | {"tickmode": "array", "tickvals": shown}


def _digits(values: NDArray[np.float64]) -> int:
    """Three digits for a fine map, where numbers are most of the bytes: no two colours look alike
    that should not, as long as there are more where the values differ by little."""
    if values.size <= style.FINE_CELLS:
        return 6
    spread = np.nanmax(values) - np.nanmin(values)
    least = spread / np.nanmax(np.abs(values)) if spread else 1.0
    return min(9, 3 + max(0, int(0.7 - np.log10(least))))


def _over(layout: Figure, panel: HeatMap, upward: bool) -> list[Figure]:
    """Lines over the map, on axes of their own that lie over its: those of the map count cells by
    their names, and a number on them would be one more name."""
    lines = overlay(panel)
    if not lines:
        return []
    across, up = [-0.5, len(panel.x) - 0.5], [-0.5, len(panel.y) - 0.5]
    up = up if upward else up[::-1]
    layout["yaxis"].pop("autorange", None)
    for name, span in (("xaxis", across), ("yaxis", up)):
        layout[name]["range"] = span
        layout[f"{name}2"] = {"overlaying": name[0], "range": span, "visible": False}
    layout["height"] += 22 * (1 + len(lines))
    layout["legend"] = LEGEND
    return [trace for turn, line in enumerate(lines) for trace in _over_line(line, panel, turn)]


def _over_line(line: OverlayLine, panel: HeatMap, turn: int) -> list[Figure]:
    """The line and, under it, its outline. Black is ink here too, and its outline paper."""
    width, halo = style.LEVEL_WIDTHS if line.thin else style.OVER_WIDTHS
    points = line.look.style == "points"
    under: Figure = {
        "type": "scatter",
        "mode": "markers" if points else "lines",
        "x": numbers(line.x, 4),
        "y": numbers(line.y, 4),
        "xaxis": "x2",
        "yaxis": "y2",
        "legendgroup": f"over {turn}",
        "showlegend": False,
        "hoverinfo": "skip",
        "line": {
            "color": style.HALO,
            "width": width + halo,
            "dash": line.look.dash,
        },
        "meta": {"paper": line.look.ink},
    }
    symbol = style.SYMBOLS[line.look.symbol][1]
    if points:
        under["marker"] = {"color": style.HALO, "symbol": symbol, "size": 10}
    over = under | {
        "name": typeset(line.label),
        "showlegend": True,
        "line": {"color": line.look.colour, "width": width, "dash": line.look.dash},
        "meta": {"ink": line.look.ink},
    }
    if points:
        over["marker"] = {"color": line.look.colour, "symbol": symbol, "size": 7}
    if line.units is not None:
        x, y = (numbers(part, 4) for part in line.units)
        del over["hoverinfo"]
        over["customdata"] = list(map(list, zip(x, y, strict=True)))
        over["hovertemplate"] = (
            f"<b>{typeset(line.label)}</b><br>{typeset(panel.x_label)}: %{{customdata[0]:{FORMAT}}}"
            f"<br>{typeset(panel.y_label)}: %{{customdata[1]:{FORMAT}}}<extra></extra>"
        )
    return [under, over]


def _distinct(labels: Sequence[str]) -> list[str]:
    """Plotly merges categories of one name; invisible marks keep two equal labels apart."""
    seen: dict[str, int] = {}
    result = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        result.append(label + "\u200b" * (seen[label] - 1))
    return result
