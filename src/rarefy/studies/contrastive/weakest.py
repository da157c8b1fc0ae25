"""A trend in eps_min that is claimed in several places, judged where it is weakest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import Identity, judge_trend
from rarefy.measure.trends import spearman_rho, spearman_trend
from rarefy.studies.kit.arrays import by_seed

Direction = Literal["increasing", "decreasing"]


def judge_weakest(
    identity: Identity, cases: Mapping[str, xr.DataArray], direction: Direction, note: str = ""
) -> Verdict:
    """Every case (seed, eps_min) has the trend; where the weakest has it, all have, so that its own
    test is enough. A case whose values do not vary is the weakest of all."""
    sign = 1 if direction == "increasing" else -1
    laid_out = {
        name: (values["eps_min"].values, by_seed(values, "eps_min"))
        for name, values in cases.items()
    }
    strength = {name: sign * spearman_rho(*case) for name, case in laid_out.items()}
    name = min(strength, key=lambda case: np.nan_to_num(strength[case], nan=-np.inf))
    said = f"at {name}, the weakest of {len(cases)}" if len(cases) > 1 else ""
    trend = spearman_trend(*laid_out[name])
    return judge_trend(identity, trend, direction, note=joined(said, note))
