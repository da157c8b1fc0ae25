"""The same pictures as plotly figures: plain dictionaries that become JSON in the page.

plotly's Python package is needed only for the script it ships (and, in tests, to check that these
dictionaries are valid figures), so it is imported late.
"""

from __future__ import annotations

import base64
import gzip
import html
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.picture import HeatMap, Lines
from rarefy.report import style
from rarefy.report.shaping import Drawn, grows_upward, heat_values, own_limits, shape, tick_labels

Figure = dict[str, Any]
FORMAT = ".4~g"


def plotly_script() -> str:
    """plotly.js, to be embedded once a page: gzip in base64, 2 MB instead of 5. The page
    unpacks it; a browser that cannot (older than 2023) shows the still images."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()


def figure(panel: Lines | HeatMap, limits: tuple[float, float] | None = None) -> Figure:
    """``{"data": [...], "layout": {...}}`` of one panel; colours of text and grid are the page's
    to set, by light or dark."""
    return _lines(panel) if isinstance(panel, Lines) else _heat_map(panel, limits)


def _safe(text: str) -> str:
    """Plotly reads tags and ``%{...}`` in labels; a label is only ever text."""
    return html.escape(str(text), quote=False).replace("%{", "%&#123;")


def _wrapped(label: str, width: int) -> str:
    return "<br>".join(_safe(line) for line in style.wrapped(label, width))


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Six digits are more than hovering shows and a third of the bytes; NaN has no JSON."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.ravel()]


def _layout(panel: Lines | HeatMap, height: int) -> Figure:
    return {
        "height": height,
        "margin": {"l": 10, "r": 12, "t": 30, "b": 10},  # the tool bar has its place on top
        "font": {"size": style.FONT_PIXELS, "family": "system-ui, sans-serif"},
        "xaxis": {"title": _title(panel.x_label, 44), "automargin": True},
        "yaxis": {"title": _title(panel.y_label, 36), "automargin": True},
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"size": style.FONT_PIXELS}},
    }


def _title(label: str, width: int) -> Figure:
    return {"text": _wrapped(label, width), "font": {"size": style.FONT_PIXELS}}


def _no_values(layout: Figure) -> Figure:
    layout["annotations"] = [
        {
            "text": "no values to show",
            "xref": "paper",
            "yref": "paper",
            "x": 0.5,
            "y": 0.5,
            "showarrow": False,
        }
    ]
    layout["xaxis"] |= {"showticklabels": False, "range": [0, 1]}
    layout["yaxis"] |= {"showticklabels": False, "range": [0, 1]}
    return {"data": [], "layout": layout}


# ---------------------------------------------------------------------------------- lines


def _lines(panel: Lines) -> Figure:
    shaped = shape(panel)
    layout = _layout(panel, 340 + 22 * max(0, len(panel.curves) - 2))
    if shaped.empty:
        return _no_values(layout)
    x_extent, y_extent = shaped.x_extent(), shaped.y_extent()
    layout["xaxis"] |= _scale(panel.x_log, x_extent)
    layout["yaxis"] |= _scale(panel.y_log, y_extent)
    data: list[Figure] = []
    for index, curve in enumerate(shaped.curves):
        data += [_band(curve, f"curve {index}")] if curve.band() else []
        data.append(_curve(curve, panel, f"curve {index}"))
    layout["showlegend"] = any(curve.label for curve in shaped.curves)
    layout["legend"] = {
        "orientation": "h",
        "yref": "container",
        "y": 0,
        "yanchor": "bottom",
        "x": 0,
        "font": {"size": style.FONT_PIXELS - 1},
    }
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


def _curve(curve: Drawn, panel: Lines, group: str) -> Figure:
    points_only = curve.look.style == "points"
    mode = "markers" if points_only else "lines+markers" if curve.marked else "lines"
    hover = (
        f"<b>{_safe(curve.label)}</b><br>{_safe(panel.x_label)}: %{{x:{FORMAT}}}"
        f"<br>{_safe(panel.y_label)}: %{{y:{FORMAT}}}"
    )
    trace: Figure = {
        "type": "scatter",
        "mode": mode,
        "name": _safe(curve.label),
        "legendgroup": group,
        "x": _numbers(curve.x),
        "y": _numbers(curve.y),
        "line": {"color": curve.look.colour, "dash": style.DASHES[curve.look.style], "width": 2},
        "marker": {
            "color": curve.look.colour,
            "symbol": style.SYMBOLS[curve.look.symbol][1],
            "size": 7,
        },
        "meta": {"ink": curve.look.ink},
    }
    if curve.low is not None and curve.high is not None:
        trace["customdata"] = list(
            map(list, zip(_numbers(curve.low), _numbers(curve.high), strict=True))
        )
        hover += f"<br>interval: %{{customdata[0]:{FORMAT}}} to %{{customdata[1]:{FORMAT}}}"
    trace["hovertemplate"] = hover + "<extra></extra>"
    return trace


def _band(curve: Drawn, group: str) -> Figure:
    """One closed outline a run of points; the gaps (None) between them stay empty."""
    x: list[float | None] = []
    y: list[float | None] = []
    for at, low, high in curve.band():
        x += [*_numbers(at), *_numbers(at[::-1]), None]
        y += [*_numbers(high), *_numbers(low[::-1]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x[:-1],
        "y": y[:-1],
        "fill": "toself",
        "fillcolor": style.see_through(curve.look.colour),
        "line": {"width": 0, "color": curve.look.colour},
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
            "text": _safe(style.shortened(label, 20)),
            "x": float(place),
            "yref": "paper",
            "y": 1,
            "yanchor": "bottom",
            "yshift": 18 * row,
            "showarrow": False,
        }
        for (_, label), place, row in zip(marks, places, rows, strict=True)
    ]


# ---------------------------------------------------------------------------------- heat maps


def _heat_map(panel: HeatMap, limits: tuple[float, float] | None) -> Figure:
    values = heat_values(panel)
    rows = len(panel.y)
    layout = _layout(panel, max(300, 110 + 22 * rows) if rows <= style.NAMED_ROWS else 420)
    if not np.isfinite(values).any():
        return _no_values(layout)
    low, high = limits or own_limits(panel)
    trace: Figure = {
        "type": "heatmap",
        "x": _distinct([_safe(label) for label in tick_labels(panel.x)]),
        "y": _distinct([_safe(label) for label in tick_labels(panel.y)]),
        "z": [_numbers(row) for row in values],
        "zmin": low,
        "zmax": high,
        "colorscale": style.colour_steps(panel.signed),
        "colorbar": {
            "title": _title(panel.colour_label, 36) | {"side": "right"},
            "thickness": 12,
            "outlinewidth": 0,
            "exponentformat": "power",
        },
        "hovertemplate": f"{_safe(panel.x_label)}: %{{x}}<br>{_safe(panel.y_label)}: %{{y}}"
        f"<br><b>{_safe(panel.colour_label)}: %{{z:{FORMAT}}}</b><extra></extra>",
        "hoverongaps": False,
    }
    layout["annotations"] = [
        {
            "x": trace["x"][column],
            "y": trace["y"][row],
            "text": _safe(text),
            "showarrow": False,
            "captureevents": False,
            "font": {
                "size": 11,
                "color": style.text_on_cell(values[row, column], low, high, panel.signed),
            },
        }
        for row, column, text in panel.notes
    ]
    layout["xaxis"] |= {"type": "category", "showgrid": False, "ticks": ""}
    layout["yaxis"] |= {"type": "category", "showgrid": False, "ticks": ""}
    longest = max(map(len, trace["x"]))
    if longest > 2:
        layout["xaxis"]["nticks"] = max(4, 36 // (longest + 2))
    if rows > style.NAMED_ROWS:
        layout["yaxis"]["nticks"] = 12
    if not grows_upward(panel.y):
        layout["yaxis"]["autorange"] = "reversed"
    layout["plot_bgcolor"] = style.MISSING
    return {"data": [trace], "layout": layout}


def _distinct(labels: Sequence[str]) -> list[str]:
    """Plotly merges categories of one name; invisible marks keep two equal labels apart."""
    seen: dict[str, int] = {}
    result = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        result.append(label + "\u200b" * (seen[label] - 1))
    return result
