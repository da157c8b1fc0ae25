"""What several studies say and lay out alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.trends import Slope

DECLARED = ("tiny", "quick", "paper")
"""Scales of the declared readings, and their rehearsals."""


def bias_name(scale: float) -> str:
    return {0.0: "no bias", 1.0: "paper's bias"}.get(float(scale), f"{scale:g} x paper's bias")


def middle_sigma(values: xr.Dataset | xr.DataArray) -> float:
    """The noise level that is shown or judged where there is room for one."""
    levels = values["sigma"].values
    return float(levels[len(levels) // 2])


def spelled_slope(slope: Slope) -> str:
    return f"{slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"


def elsewhere(verdicts: Sequence[Verdict], scale: str) -> list[Verdict]:
    """At another size than the declared one a primary reading is the same question under another
    choice, and its variations there say nothing more."""
    if scale in DECLARED:
        return list(verdicts)
    primary = [verdict for verdict in verdicts if verdict.role == "primary"]
    return [replace(v, claim=v.about, setting=f"{scale}: {v.setting}") for v in primary]
