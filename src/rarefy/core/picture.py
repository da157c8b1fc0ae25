"""Pictures as data: a study says what to show, ``rarefy.report`` decides how to draw it.

One description gives the printed figure, the interactive one and, in tests, neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rarefy.core.errors import bad_value


@dataclass(frozen=True)
class Curve:
    """A line with an optional band. ``role`` groups curves by colour ("majority", "minority",
    "noise", "theory", or any other word; the same word has the same colour in every picture)."""

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    role: str | None = None
    style: str = "solid"  # solid | dashed | dotted | points


@dataclass(frozen=True)
class Lines:
    """Curves on one pair of axes; ``marks`` are labelled vertical lines such as stage times."""

    curves: Sequence[Curve]
    x_label: str
    y_label: str
    title: str = ""
    x_log: bool = False
    y_log: bool = False
    marks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True)
class HeatMap:
    """A matrix, ``values[row, column]``; ``notes`` puts short texts into cells. ``signed``: values
    are gains and losses, so that 0 is the middle of the colours. ``curves`` lie over the map in the
    units of its axes, which must be numbers then. ``levels``: values whose level lines are drawn,
    named "measured: ..."."""

    values: np.ndarray
    x: Sequence[object]
    y: Sequence[object]
    x_label: str
    y_label: str
    colour_label: str
    title: str = ""
    notes: Sequence[tuple[int, int, str]] = ()
    signed: bool = False
    curves: Sequence[Curve] = ()
    levels: Sequence[float] = ()

    def __post_init__(self) -> None:
        # mistakes of whoever writes a study, which making its pictures once shows; what depends
        # on the numbers of a run is left to the drawing, where the rest of a page still stands
        for curve in self.curves:
            for name, labels in (("x", self.x), ("y", self.y)):
                if not all_numbers(labels):
                    names = [label for label in labels if not _is_number(label)]
                    raise bad_value(
                        f"{name} of heat map with curve {curve.label!r}",
                        names[0],
                        "must be a number, or a curve has no place on it",
                    )
            if curve.low is not None or curve.high is not None:
                raise bad_value(
                    f"curves of heat map {self.title!r}", curve.label, "must have no band"
                )
        for level in self.levels:
            if not np.isfinite(level):
                raise bad_value(f"levels of heat map {self.title!r}", level, "must be finite")


def all_numbers(labels: Sequence[object]) -> bool:
    """Whether the labels of a heat map's rows or columns are values of a quantity."""
    return all(_is_number(label) for label in labels)


def _is_number(label: object) -> bool:
    return isinstance(label, int | float | np.number) and not isinstance(label, bool)


@dataclass(frozen=True)
class Picture:
    """One figure of a study: panels side by side, a title and a caption that says what to see."""

    name: str
    title: str
    caption: str
    panels: Sequence[Lines | HeatMap] = field(default_factory=tuple)


@dataclass(frozen=True)
class Table:
    """A small table for the report: column heads and rows of text or numbers."""

    name: str
    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
