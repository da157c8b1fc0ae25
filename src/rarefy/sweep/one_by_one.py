"""Experiments whose cells are computed one after the other: trainings of real networks, say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rarefy.core.contracts import Cells, Context

Measured = dict[str, np.ndarray]


def one_by_one(
    cells: Cells,
    compute: Callable[[Mapping[str, Any], int], Measured],
    context: Context | None = None,
) -> Measured:
    """What ``compute`` gives for each cell (its values, its key), side by side on the run axis.
    With a context each cell is one step of progress, and time is looked at before it."""
    found = []
    for row, key in enumerate(cells.keys.tolist()):
        if context is not None:
            context.check_time()
        found.append(compute({name: one[row] for name, one in cells.values.items()}, key))
        if context is not None:
            context.advance(1)
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def spread_epochs(epochs: int, count: int) -> np.ndarray:
    """``count`` of the epochs (all, if there are fewer), evenly spread, with the last one."""
    count = min(max(count, 1), epochs)
    return np.unique(np.linspace(epochs / count, epochs, count).round().astype(int))
