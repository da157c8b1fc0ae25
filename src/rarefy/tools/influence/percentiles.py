"""Ranks within classes: how numbers of different classes can be compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def percentiles(values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each value within its class: the share of the class's other values below it, in per cent;
    of equal values the middle one's. 0 is the lowest, 100 the highest, 50 a class's only value."""
    found = np.full(len(values), np.nan)
    for rows in pd.Series(values).groupby(labels).indices.values():
        own = pd.Series(values[rows])
        defined = int(own.notna().sum())
        ranks = own.rank(method="average") - 1
        found[rows] = 50.0 if defined == 1 else 100 * ranks / max(defined - 1, 1)
        found[rows[own.isna().to_numpy()]] = np.nan
    return found
