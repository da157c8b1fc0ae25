"""From samples to a curve with its band."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rarefy.core.picture import Curve
from rarefy.measure.estimates import mean_band


def mean_curve(
    label: str,
    x: ArrayLike,
    samples: ArrayLike,
    role: str | None = None,
    style: str = "solid",
    fewest: int = 2,
) -> Curve:
    """The mean of ``samples``, (samples, points), with its 95 % interval from ``fewest`` on."""
    band = mean_band(samples, fewest=fewest)
    return Curve(label, np.asarray(x), band.mean, band.low, band.high, role, style)
