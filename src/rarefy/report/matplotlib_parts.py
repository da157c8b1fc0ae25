"""What matplotlib drawings of lines and of heat maps have in common: text and the legend."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from rarefy.report import style

Limits = tuple[float, float] | None
Place = Figure | SubFigure


def escape_dollars(text: str, most: int = 200) -> str:
    # a dollar sign would start a formula; a label may hold any text
    return style.shortened(text, most).replace("$", r"\$")


def legend(place: Place, drawn: Sequence[Line2D], names: Sequence[str]) -> None:
    # matplotlib leaves out labels that begin with an underscore
    labels = [escape_dollars(f" {name}" if name.startswith("_") else name, 48) for name in names]
    columns = max(1, min(4, 56 // (max(map(len, labels)) + 6)))
    place.legend(drawn, labels, loc="outside lower center", ncols=columns, frameon=False)


def write_message(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#555555")
    axes.set_xticks([])
    axes.set_yticks([])
