"""Words and numbers that captions, notes and tables share."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.measure.statistics import mean_interval


def seeds_in_words(results: xr.Dataset) -> str:
    count = results.sizes["seed"]
    return "1 seed" if count == 1 else f"{count} seeds"


def shown(values: np.ndarray) -> str:
    """A mean with its 95 % interval."""
    mean = mean_interval(values)
    if mean.n == 0:
        return "not run"
    if mean.n == 1:
        return f"{mean.mean:.3f}"
    return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"
