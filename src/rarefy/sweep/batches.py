"""A batch whose cells cannot be computed together: they differ in shape, or in how they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rarefy.core.contracts import Cells


def split_by_axis(
    cells: Cells, axis: str, simulate: Callable[[Any, Cells], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """``simulate(value, part)`` for the cells of each value of ``axis``; outputs in batch order."""
    values = np.asarray(cells.values[axis])
    found: dict[str, np.ndarray] = {}
    for value in dict.fromkeys(values.tolist()):
        rows = np.flatnonzero(values == value)
        for name, part in simulate(value, cells.take(rows)).items():
            if name not in found:
                found[name] = np.empty((len(cells), *part.shape[1:]), dtype=part.dtype)
            found[name][rows] = part
    return found
