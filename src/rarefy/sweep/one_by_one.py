"""Studies whose cells are trainings of real networks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rarefy.core.contracts import Cells

Measured = dict[str, np.ndarray]


def one_by_one(cells: Cells, train: Callable[[Mapping[str, Any], int], Measured]) -> Measured:
    """What ``train`` gives for each cell (its values, its key), side by side on the run axis."""
    found = [
        train({name: column[row] for name, column in cells.values.items()}, key)
        for row, key in enumerate(cells.keys.tolist())
    ]
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def spread_epochs(epochs: int, count: int) -> np.ndarray:
    """``count`` of the epochs (all, if there are fewer), evenly spread, with the last one."""
    count = min(max(count, 1), epochs)
    return np.unique(np.linspace(epochs / count, epochs, count).round().astype(int))
