"""The same pictures as plotly figures: plain dictionaries that become JSON in the page.

plotly's Python package is needed only for the script it ships (and, in tests, to check that these
dictionaries are valid figures), so it is imported late.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from functools import cache

import numpy as np

from rarefy.core.picture import HeatMap, Lines
from rarefy.report import style
from rarefy.report.interactive_map import heat_map
from rarefy.report.panel_data import CurveData, prepare_lines
from rarefy.report.plotly_parts import (
    FORMAT,
    LEGEND,
    Figure,
    no_values,
    numbers,
    plain_layout,
    typeset,
)


@cache
def plotly_script() -> str:
    """plotly.js, to be embedded once per page: 2 MB instead of 5. The page unpacks it; a browser
    that cannot (older than 2023) shows the still images."""
    from plotly.offline import get_plotlyjs

    return gzip_base64(get_plotlyjs())


def gzip_base64(text: str) -> str:
    """gzip in base64: for what a page's script unpacks when it is needed."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def figure(panel: Lines | HeatMap, limits: tuple[float, float] | None = None) -> Figure:
    """``{"data": [...], "layout": {...}}`` of one panel; colours of text and grid are the page's
    to set, by light or dark."""
    return _lines(panel) if isinstance(panel, Lines) else heat_map(panel, limits)


def _lines(panel: Lines) -> Figure:
    shaped = prepare_lines(panel)
    layout = plain_layout(panel, 340 + 22 * max(0, len(panel.curves) - 2))
    if shaped.empty:
        return no_values(layout)
    x_extent, y_extent = shaped.x_extent(), shaped.y_extent()
    layout["xaxis"] |= _scale(panel.x_log, x_extent)
    layout["yaxis"] |= _scale(panel.y_log, y_extent)
    data: list[Figure] = []
    for index, curve in enumerate(shaped.curves):
        data += [_band(curve, f"curve {index}")] if curve.band() else []
        data.append(_curve(curve, panel, f"curve {index}"))
    layout["showlegend"] = any(curve.label for curve in shaped.curves)
    layout["legend"] = LEGEND
    _mark(layout, panel, shaped.marks, x_extent)
    return {"data": data, "layout": layout}


def _scale(logarithmic: bool, extent: tuple[float, float]) -> Figure:
    if not logarithmic:
        return {"exponentformat": "power"}
    scale: Figure = {"type": "log", "exponentformat": "power"}
    decades = np.log10(extent[1] / extent[0])
    if decades < 2.5:
        # D1: ticks at every digit; D2: at 1, 2 and 5
        return scale | {"dtick": "D1" if decades < 0.8 else "D2", "tickformat": "~g"}
    return scale | {"dtick": int(np.ceil(decades / 8))}


def _curve(curve: CurveData, panel: Lines, group: str) -> Figure:
    points_only = curve.look.style == "points"
    mode = "markers" if points_only else "lines+markers" if curve.marked else "lines"
    wider = style.WIDER * curve.covered
    hover = (
        f"<b>{typeset(curve.label)}</b><br>{typeset(panel.x_label)}: %{{x:{FORMAT}}}"
        f"<br>{typeset(panel.y_label)}: %{{y:{FORMAT}}}"
    )
    trace: Figure = {
        "type": "scatter",
        "mode": mode,
        "name": typeset(curve.label),
        "legendgroup": group,
        "x": numbers(curve.x),
        "y": numbers(curve.y),
        "line": {"color": curve.look.colour, "dash": curve.look.dash, "width": 2 + wider},
        "marker": {
            "color": curve.look.colour,
            "symbol": style.SYMBOLS[curve.look.symbol][1],
            "size": 7 + wider,
        }
        | ({"maxdisplayed": 8} if curve.sparse else {}),
        "meta": {"ink": curve.look.ink},
    }
    if curve.low is not None and curve.high is not None:
        trace["customdata"] = list(
            map(list, zip(numbers(curve.low), numbers(curve.high), strict=True))
        )
        hover += f"<br>interval: %{{customdata[0]:{FORMAT}}} to %{{customdata[1]:{FORMAT}}}"
    trace["hovertemplate"] = hover + "<extra></extra>"
    return trace


def _band(curve: CurveData, group: str) -> Figure:
    """One closed outline per run of points; the gaps (None) between them stay empty."""
    x: list[float | int | None] = []
    y: list[float | int | None] = []
    alone = all(len(at) == 1 for at, _, _ in curve.band())  # an area would have no width
    for at, low, high in curve.band():
        x += [*numbers(at), *numbers(at[::-1]), None]
        y += [*numbers(high), *numbers(low[::-1]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x[:-1],
        "y": y[:-1],
        "fill": "toself",
        "fillcolor": style.see_through(curve.look.colour),
        "line": {"width": 2 if alone else 0, "color": curve.look.colour},
        "legendgroup": group,
        "showlegend": False,
        "hoverinfo": "skip",
        "meta": {"ink": curve.look.ink},
    }


def _mark(
    layout: Figure, panel: Lines, marks: Sequence[tuple[float, str]], extent: tuple[float, float]
) -> None:
    if not marks:
        return
    # an annotation's place on a logarithmic axis is a logarithm, a shape's is not
    places = np.array([np.log10(x) if panel.x_log else x for x, _ in marks])
    low, high = np.log10(extent) if panel.x_log else extent
    longest = min(20, max(len(label) for _, label in marks))
    rows = style.stagger((places - low) / max(high - low, 1e-300), 0.03 * longest + 0.03)
    layout["margin"]["t"] += 18 * (1 + max(rows))
    layout["shapes"] = [
        {
            "type": "line",
            "x0": x,
            "x1": x,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"color": "#888888", "width": 1, "dash": "dash"},
        }
        for x, _ in marks
    ]
    layout["annotations"] = [
        {
            "text": typeset(style.shortened(label, 20)),
            "x": float(place),
            "yref": "paper",
            "y": 1,
            "yanchor": "bottom",
            "yshift": 18 * row,
            "showarrow": False,
        }
        for (_, label), place, row in zip(marks, places, rows, strict=True)
    ]
