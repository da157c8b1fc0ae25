"""Draws of five hundred cells, and how far their statistics may be off, for tests of draws."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from rarefy.core.rng import Draws, key

CELLS = np.array([key("cell", number) for number in range(500)], dtype=np.int64)
SIGMAS = 5.0
LEAST_P = 1e-3
"""The generator has no state, so nothing is flaky: a bound is met always or never. Bounds on
statistics are five standard errors, p-values at least 0.001, fixed before looking."""


def drawn(draws: Draws, kind: str, shape: tuple[int, ...], step: int = 0, to: str = "s") -> Tensor:
    if kind == "integers":
        return draws.integers(to, 7, shape, step)
    return getattr(draws, kind)(to, shape, step)


def correlation(first: Tensor, second: Tensor) -> float:
    return float(np.corrcoef(first.flatten().numpy(), second.flatten().numpy())[0, 1])
