"""The case on which a verdict about several cases stands or falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import (
    Identity,
    Interval,
    bootstrap_interval,
    finite_mean,
    judge_bound,
    mean_interval,
)

SLACK = 1e-12
"""Rounding of samples that are all equal."""


def corrected_level(cases: int, level: float = 0.95) -> float:
    """Level of each of several intervals so that all cover at ``level`` together (Bonferroni)."""
    return 1 - (1 - level) / max(cases, 1)


def worst_of(
    low: Sequence[float],
    high: Sequence[float],
    floor: float = -np.inf,
    ceiling: float = np.inf,
    precise: Sequence[bool] | None = None,
) -> int:
    """Which interval [low, high] decides whether all lie in [floor, ceiling].

    If some lie outside, the one that is farthest out: all cases together fail. If none does, the
    one that sticks out most, or comes closest to the edge: all hold only if that one does. Cases
    that are not ``precise`` can make the whole fail, but cannot keep it from holding.
    """
    lows, highs = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    outside = np.maximum(lows - ceiling, floor - highs)
    if (outside > SLACK).any():  # False for NaN ends
        return int(np.nanargmax(outside))
    overhang = np.maximum(highs - ceiling, floor - lows)
    overhang = np.where(np.isnan(overhang), np.inf, overhang)  # no interval: nothing is sure
    if precise is not None and any(precise):
        overhang = np.where(np.asarray(precise), overhang, -np.inf)
    return int(overhang.argmax())


def judge_worst(
    identity: Identity,
    cases: Mapping[str, np.ndarray],
    bound: float,
    side: Literal["at_least", "at_most"],
    note: str = "",
) -> Verdict:
    """Every case is on the right side of ``bound``: judged by the case on which that stands or
    falls, with intervals that cover all together. A case is the mean of (seed,), or of (seed,
    point) the mean at the point where it is furthest from what is claimed."""
    if not cases:
        return judge_bound(identity, [], bound, side, note=note or "no such cases were run")
    level = corrected_level(len(cases))
    found = {name: _extreme(values, side, level) for name, values in cases.items()}
    floor, ceiling = (bound, np.inf) if side == "at_least" else (-np.inf, bound)
    low, high = ([each[place] for each in found.values()] for place in (1, 2))
    name = list(found)[worst_of(low, high, floor, ceiling)]
    said = f"decided at {name}, the worst of {len(cases)} cases" if len(cases) > 1 else name
    return judge_bound(identity, found[name], bound, side, note=joined(said, note))


def _extreme(values: np.ndarray, side: str, level: float) -> Interval:
    if values.ndim == 1:
        return mean_interval(values, level)
    pick = np.min if side == "at_least" else np.max
    return bootstrap_interval(values, lambda drawn: pick(finite_mean(drawn, 1), axis=1), level)
