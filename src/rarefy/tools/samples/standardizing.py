"""Features at mean 0 and std 1: which units a table or an array is in is no information."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.tools.samples.messages import rows_text
from rarefy.tools.samples.samples import Samples

Floats = NDArray[np.float64]
ROWS_AT_ONCE = 4096
LARGEST = 1e150
"""Squares of numbers beyond it have none."""
MOST = 1 << 30
"""Bytes that standardised features may take in memory where nobody asked for them."""
FAR_APART = 100.0
"""Columns whose spreads differ by more than this factor are worth a note."""


def standardized(samples: Samples, wanted: bool | None = None) -> Samples:
    """The same samples with every feature at mean 0 and std 1, as float64; ids and what is shown
    stay those of the features as they were read.

    wanted: None: unless they are images, whose pixels have one unit, or take more than a gigabyte
    of memory so (a note tells that).
    """
    if samples.image is not None:
        if wanted:
            raise bad_value("standardize", True, "does not fit images, whose pixels have one unit")
        return samples
    size = samples.features.size * 8
    if wanted is False or (wanted is None and size > MOST):
        note = _units(samples) if size <= MOST else []
        if wanted is None:
            note = [f"features are not standardised, which takes {size / 1e9:.1f} GB of memory"]
        return replace(samples, notes=(*samples.notes, *note))
    values = samples.features.astype(np.float64)
    endless = ~(np.abs(values) < LARGEST)
    if endless.any():  # told here: it would make NaN of every row
        column = int(endless.any(axis=0).argmax())
        where = rows_text(np.flatnonzero(endless[:, column]))
        name = f"{samples.source or samples.name}: column {_name(samples, column)}"
        known = np.isfinite(values[:, column]).all()
        what = f"beyond {LARGEST:g}" if known else "NaN or infinite"
        raise UsageError(f"{name} is {what} in {where}")
    values -= values.mean(axis=0)
    values /= _divisor(values.std(axis=0), np.abs(samples.features).max(axis=0))
    return replace(samples, features=values, as_read=samples.features, ids_from=lambda: samples.ids)


def _divisor(spread: Floats, largest: Any) -> Floats:
    """What differs by rounding alone is the same."""
    return np.where(spread > 1e-12 * largest, spread, 1.0)


@dataclass
class ColumnMoments:
    """Mean and spread of every column of rows that come in any order (Chan, Golub and LeVeque
    1979)."""

    count: int = 0
    mean: Floats | float = 0.0
    squares: Floats | float = 0.0
    """Sums of squared differences to the mean."""
    largest: Floats | float = 0.0

    def add(self, rows: NDArray[Any]) -> None:
        """(m, d), any real type; a few at a time are made float64."""
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[first : first + ROWS_AT_ONCE].astype(np.float64)
            largest, mean = np.abs(part).max(axis=0), part.mean(axis=0)
            part -= mean
            self.merge(ColumnMoments(len(part), mean, np.square(part).sum(axis=0), largest))

    def merge(self, other: ColumnMoments) -> None:
        if other.count == 0:
            return
        both, step = self.count + other.count, other.mean - self.mean
        self.squares = self.squares + other.squares + step**2 * (self.count * other.count / both)
        self.mean = self.mean + step * (other.count / both)
        self.count, self.largest = both, np.maximum(self.largest, other.largest)

    def divisor(self) -> Floats:
        """Of each column, as ``standardized`` has it."""
        return _divisor(np.sqrt(np.asarray(self.squares) / self.count), self.largest)


def _name(samples: Samples, column: int) -> str:
    return str(column) if samples.feature_names is None else repr(samples.feature_names[column])


def _units(samples: Samples) -> list[str]:
    """A covariance is ruled by the columns with the largest numbers; that should be told."""
    with np.errstate(invalid="ignore", over="ignore"):  # infinite numbers are told elsewhere
        spread = samples.features.astype(np.float64).std(axis=0)
    if not np.isfinite(spread).all() or not (spread > 0).any():
        return []
    largest, typical = float(spread.max()), float(np.median(spread[spread > 0]))
    if largest <= FAR_APART * typical:
        return []
    name = _name(samples, int(spread.argmax()))
    return [
        f"column {name} varies {largest / typical:.0f} times as much as the middle one and rules "
        "the score; standardize brings all columns to std 1"
    ]
