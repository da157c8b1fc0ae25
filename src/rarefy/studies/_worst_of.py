"""The case on which a verdict about several cases stands or falls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
