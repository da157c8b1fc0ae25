"""Intervals of quantities that cannot leave a range: shares, probabilities, cosines."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
_SHARES = re.compile(r"\b(accuracy|share|error|fraction|probability|probes?|right)\b|\bP\(", re.I)
_DIFFERENCES = re.compile(r"\b(saved|gain|change|difference|minus|lost|ratio|over)\b| / ", re.I)


def bounds(label: str, shown: Floats) -> tuple[float, float] | None:
    """Between which values the quantity on an axis lies by its nature, as its label says; None: it
    is not bounded, or the ``shown`` values say otherwise."""
    if _DIFFERENCES.search(label):
        return None
    low, high = -1.0, 1.0
    if not re.search(r"\bcosine", label, re.I):
        if not _SHARES.search(label):
            return None
        low, high = 0.0, 100.0 if "%" in label else 1.0
    known = shown[np.isfinite(shown)]
    inside = known.size and known.min() >= low and known.max() <= high
    return (low, high) if inside else None


def kept_inside(
    mean: Floats, low: Floats, high: Floats, limits: tuple[float, float]
) -> tuple[Floats, Floats]:
    """An end outside of the range is made anew on the logit scale, with the standard error of the
    delta method, s / (p (1 - p)): there it cannot be outside. An end that lies inside stays."""
    least, most = limits
    share = (mean - least) / (most - least)
    half = (high - low) / 2 / (most - least)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        place, width = special.logit(share), half / (share * (1 - share))
        ends = special.expit(place - width), special.expit(place + width)
    # samples that all are 0, or all 1, have no spread to make an interval of
    sure = (share <= 0) | (share >= 1)
    lowest, highest = (np.where(sure, share, end) * (most - least) + least for end in ends)
    return np.where(low < least, lowest, low), np.where(high > most, highest, high)
