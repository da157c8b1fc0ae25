"""What several studies say and lay out alike."""

from __future__ import annotations

import numpy as np
import xarray as xr


def bias_name(scale: float) -> str:
    return {0.0: "no bias", 1.0: "paper's bias"}.get(float(scale), f"{scale:g} x paper's bias")


def rows(values: xr.DataArray) -> np.ndarray:
    """(seed, eps_min) array of one quantity."""
    return values.transpose("seed", "eps_min").values
