"""Features at mean 0 and std 1: which units a table or an array is in is no information."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rarefy.core.errors import UsageError, bad_value
from rarefy.tools.samples.messages import rows_text
from rarefy.tools.samples.samples import Samples

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
    endless = ~np.isfinite(values)
    if endless.any():  # told here: it would make NaN of every row
        column = int(endless.any(axis=0).argmax())
        where = rows_text(np.flatnonzero(endless[:, column]))
        name = f"{samples.source or samples.name}: column {_name(samples, column)}"
        raise UsageError(f"{name} is NaN or infinite in {where}")
    values -= values.mean(axis=0)
    spread = values.std(axis=0)
    # what differs by rounding alone is the same
    values /= np.where(spread > 1e-12 * np.abs(samples.features).max(axis=0), spread, 1.0)
    return replace(samples, features=values, as_read=samples.features, ids_from=lambda: samples.ids)


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
