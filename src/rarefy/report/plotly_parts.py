"""What plotly figures of lines and of heat maps have in common: text, numbers, axes, legend."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.picture import HeatMap, Lines
from rarefy.report import style
from rarefy.report.formulas import tags

Figure = dict[str, Any]
FORMAT = ".4~g"
LEGEND: Figure = {
    "orientation": "h",
    "yref": "container",
    "y": 0,
    "yanchor": "bottom",
    "x": 0,
    "font": {"size": style.FONT_PIXELS - 1},
}


def escape(text: str) -> str:
    """Plotly reads tags and ``%{...}`` in labels; a label is only ever text."""
    return html.escape(str(text), quote=False).replace("%{", "%&#123;")


def typeset(text: str) -> str:
    return tags(str(text), escape)


def wrapped(label: str, width: int) -> str:
    return "<br>".join(typeset(line) for line in style.wrapped(label, width))


def numbers(values: NDArray[np.float64], digits: int = 6) -> list[float | int | None]:
    """Six digits are more than hovering shows and a third of the bytes; NaN has no JSON."""
    return [_number(value, digits) if np.isfinite(value) else None for value in values.ravel()]


def _number(value: float, digits: int) -> float | int:
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e6 else short


def plain_layout(panel: Lines | HeatMap, height: int) -> Figure:
    return {
        "height": height,
        "margin": {"l": 10, "r": 12, "t": 30, "b": 10},  # the tool bar has its place on top
        "font": {"size": style.FONT_PIXELS, "family": "system-ui, sans-serif"},
        "xaxis": {"title": title(panel.x_label, 44), "automargin": True},
        "yaxis": {"title": title(panel.y_label, 36), "automargin": True},
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"size": style.FONT_PIXELS}},
    }


def title(label: str, width: int) -> Figure:
    return {"text": wrapped(label, width), "font": {"size": style.FONT_PIXELS}}


def no_values(layout: Figure) -> Figure:
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
