"""Ranks within classes: how numbers of different classes can be compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def percentiles(values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each value within its class: the share of the class's other values below it, in per cent;
    of equal values the middle one's. 0 is the lowest, 100 the highest, 50 a class's only value."""
    own = pd.Series(values).groupby(labels)
    defined = own.transform("count").to_numpy()
    ranks = own.rank(method="average").to_numpy() - 1
    found: NDArray[np.float64] = 100 * ranks / np.maximum(defined - 1, 1)
    found[(defined == 1) & ~np.isnan(values)] = 50.0
    return found
