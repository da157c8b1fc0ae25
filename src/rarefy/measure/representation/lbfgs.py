"""L-BFGS (Nocedal 1980) for a smooth convex function of one tensor, which says whether it arrived.

Ours and not ``torch.optim.LBFGS``, because the measure of being trained must be chosen here (the
gradient in the coordinates of the features, not in those that are searched), and because a value in
float64 beside a gradient in float32 tells a small step from rounding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

MEMORY = 20
"""Pairs of steps and changes of the gradient that are remembered."""
_HALVINGS = 20
_PATIENCE = 50
"""Steps without a lower value or a smaller error after which rounding is to blame."""
_FAILURES = 2
"""Directions along which no step was good enough that are forgiven."""
_SUFFICIENT = 1e-4
"""Share of the decrease that the gradient promises which a step must bring (Armijo 1966)."""


class Point(NamedTuple):
    """A function at one place: its value, its gradient, and how far from trained it is."""

    value: float
    gradient: Tensor
    error: float


class OptimizeResult(NamedTuple):
    """Where the search ended; ``error`` at most the tolerance, or ``converged`` is false."""

    place: Tensor
    error: float
    steps: int
    converged: bool


def minimise(
    look: Callable[[Tensor], Point], start: Tensor, tolerance: float, most: int, rounding: float
) -> OptimizeResult:
    """Descend from ``start`` until ``error`` <= tolerance, for ``most`` steps at most, or until
    rounding hides the way.

    rounding: relative error of a value; a step that raises it by no more is not refused.
    """
    place, here = start, look(start)
    lowest, least, last, failures = here.value, here.error, 0, 0
    changes: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=MEMORY)
    for steps in range(most):
        if here.error <= tolerance:
            return OptimizeResult(place, here.error, steps, True)
        if steps - last > _PATIENCE:
            return OptimizeResult(place, here.error, steps, False)
        direction = _direction(here.gradient, changes)
        slope = float((direction * here.gradient).sum())
        if not slope < 0:  # rounding spoilt the memory: begin again downhill
            changes.clear()
            direction = -here.gradient
            slope = -float(here.gradient.square().sum())
        size = 1.0
        for _ in range(_HALVINGS):
            there = look(place + size * direction)
            allowed = here.value + rounding * abs(here.value) + _SUFFICIENT * size * slope
            if there.value <= allowed:
                break
            size /= 2
        else:
            failures += 1
            if not changes or failures > _FAILURES:
                return OptimizeResult(place, here.error, steps, False)
            changes.clear()
            continue
        step, change = size * direction, there.gradient - here.gradient
        curvature = float((step * change).sum())
        if curvature > 0:
            changes.append((step, change, curvature))
        place, here = place + step, there
        if here.value < lowest - rounding * abs(lowest) or here.error < least:
            last = steps
        lowest, least = min(lowest, here.value), min(least, here.error)
    return OptimizeResult(place, here.error, most, here.error <= tolerance)


def _direction(gradient: Tensor, changes: deque[tuple[Tensor, Tensor, float]]) -> Tensor:
    """The two loops of Nocedal (1980)."""
    q = gradient.clone()
    weights = []
    for step, change, curvature in reversed(changes):
        weight = (step * q).sum() / curvature
        q -= weight * change
        weights.append(weight)
    if changes:
        _, change, curvature = changes[-1]
        q *= curvature / change.square().sum()
    for (step, change, curvature), weight in zip(changes, reversed(weights), strict=True):
        q += step * (weight - (change * q).sum() / curvature)
    return -q
