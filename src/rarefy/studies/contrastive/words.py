"""What several studies say and lay out alike."""

from __future__ import annotations

import xarray as xr

from rarefy.measure.trends import Slope


def bias_name(scale: float) -> str:
    return {0.0: "no bias", 1.0: "paper's bias"}.get(float(scale), f"{scale:g} x paper's bias")


def middle_sigma(values: xr.Dataset | xr.DataArray) -> float:
    """The noise level that is shown or judged where there is room for one."""
    levels = values["sigma"].values
    return float(levels[len(levels) // 2])


def spelled_slope(slope: Slope) -> str:
    return f"{slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
