"""Differences from the dense network as words."""

from __future__ import annotations

import numpy as np

from rarefy.measure.estimates import Interval

FEWEST = 3
"""Seeds from which a single cell's own interval is believed: of two, counts of right answers are
equal by chance now and then, and the interval has no width."""
NONE = "–"


def said(difference: Interval) -> str:
    """A difference with its interval; starred where that excludes 0, a dagger for one seed."""
    if not np.isfinite(difference.mean):
        return NONE
    if difference.n < 2:
        return f"{difference.mean:+.2f}†"
    star = "*" if is_apart(difference) else ""
    return f"{difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]{star}"


def is_apart(difference: Interval) -> bool:
    """From 0, at 95 %."""
    return difference.n >= FEWEST and bool(difference.low > 0 or difference.high < 0)


def number(value: float, form: str = ".2f") -> str:
    return format(value, form) if np.isfinite(value) else NONE


def asked_at(test_noise: float) -> str:
    return "without noise" if np.isclose(test_noise, 0) else f"at noise {test_noise:g}"
