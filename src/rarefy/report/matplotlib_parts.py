"""What matplotlib drawings of lines and of heat maps have in common: text and the legend."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from rarefy.report import style
from rarefy.report.formulas import mathtext

Limits = tuple[float, float] | None
Place = Figure | SubFigure


def typeset(text: str, most: int = 200) -> str:
    return mathtext(style.shortened(text, most))


def typeset_lines(label: str, width: int) -> str:
    return "\n".join(typeset(line) for line in style.wrapped(label, width))


def legend(place: Place, drawn: Sequence[Line2D], names: Sequence[str]) -> None:
    # matplotlib leaves out labels that begin with an underscore
    labels = [typeset(f" {name}" if name.startswith("_") else name, 48) for name in names]
    columns = max(1, min(4, 56 // (min(48, max(map(len, names))) + 6)))
    place.legend(drawn, labels, loc="outside lower center", ncols=columns, frameon=False)


def write_message(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#555555")
    axes.set_xticks([])
    axes.set_yticks([])
