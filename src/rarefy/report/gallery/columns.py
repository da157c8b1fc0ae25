"""Samples of a table in words: their features by name, those first that are odd for their class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from rarefy.report.gallery.table import Floats, Rows, ScoreTable, plain_text

Columns = Callable[[int], Sequence[tuple[str, float]]]
"""A row's features: names and values."""
MOST_COLUMNS = 64
"""So many columns of a table are listed."""
TOLD = 4
"""Features that a sample shows unopened."""
_OF_CLASS, _IN_ALL = 200, 20_000
"""Rows of a class, and of all, that say what is usual."""


@dataclass
class Features:
    """Named numbers of each sample. Usual is the median of (up to 200) samples of the class, and
    how far a value is from it is counted in their median distance from it."""

    columns: Columns
    samples: ScoreTable
    names: list[str] = field(init=False)
    medians: dict[int, Floats] = field(default_factory=dict)
    _spreads: dict[int, Floats] = field(default_factory=dict)
    _values: dict[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_class = np.argsort(self.samples.label, kind="stable")
        self._ends = np.cumsum(self.samples.sizes())
        self.names = [str(name) for name, _ in list(self.columns(0))[:MOST_COLUMNS]]

    def values(self, row: int) -> Floats:
        if row not in self._values:
            given = [float(value) for _, value in list(self.columns(row))[: len(self.names)]]
            self._values[row] = np.array(given)
        return self._values[row]

    def usual(self, label: int) -> tuple[Floats, Floats]:
        """Medians of a class, and spreads (NaN where there is none)."""
        if label not in self.medians:
            begin = self._ends[label - 1] if label else 0
            rows = self._by_class[begin : self._ends[label]]
            most = max(1, min(_OF_CLASS, _IN_ALL // len(self.samples.classes)))
            keys = pd.util.hash_array(self.samples.ids[rows], categorize=False)
            some = rows[np.argsort(keys, kind="stable")[:most]]
            held = np.array([self.values(int(row)) for row in some]).reshape(len(some), -1)
            middle = _median(held, len(self.names))
            spread = _median(np.abs(held - middle), len(self.names))
            self.medians[label] = middle
            self._spreads[label] = np.where(spread > 0, spread, np.nan)
        return self.medians[label], self._spreads[label]

    def order(self, row: int) -> Rows:
        """Columns by how far the sample is from what is usual in its class, the farthest first."""
        middle, spread = self.usual(int(self.samples.label[row]))
        far = np.abs(self.values(row) - middle)
        # in a class where a feature never varies, any other value is the oddest thing there is
        far = np.where(np.isnan(spread) & (far > 0), np.inf, far / spread)
        return np.argsort(-np.nan_to_num(far, nan=-1.0, posinf=np.finfo(float).max), kind="stable")

    def told(self, row: int) -> list[tuple[str, str]]:
        """The oddest ones, in words."""
        values = self.values(row)
        return [(plain_text(self.names[at]), f"{values[at]:.4g}") for at in self.order(row)[:TOLD]]


def _median(held: Floats, width: int) -> Floats:
    """Of each column, by its known values; NaN where there is none."""
    if not len(held):
        return np.full(width, np.nan)
    ordered = np.sort(np.where(np.isfinite(held), held, np.nan), axis=0)  # (NaN comes last)
    known, column = np.isfinite(held).sum(axis=0), np.arange(width)
    low, high = np.maximum(known - 1, 0) // 2, np.minimum(known // 2, len(held) - 1)
    return np.mean([ordered[low, column], ordered[high, column]], axis=0)
