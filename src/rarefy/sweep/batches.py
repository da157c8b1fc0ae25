"""A batch whose cells cannot be computed together: they differ in shape, or in how they begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from rarefy.core.contracts import Cells, Experiment

Arrays = dict[str, np.ndarray]


def split_by_axis(cells: Cells, axis: str, simulate: Callable[[Any, Cells], Arrays]) -> Arrays:
    """``simulate(value, part)`` for the cells of each value of ``axis``; outputs in batch order."""
    values = np.asarray(cells.values[axis])
    found: Arrays = {}
    for value in dict.fromkeys(values.tolist()):
        rows = np.flatnonzero(values == value)
        for name, part in simulate(value, cells.take(rows)).items():
            if name not in found:
                found[name] = np.empty((len(cells), *part.shape[1:]), dtype=part.dtype)
            found[name][rows] = part
    return found


def split_by_axes(
    cells: Cells, axes: Sequence[str], simulate: Callable[..., Mapping[str, Tensor | np.ndarray]]
) -> Arrays:
    """``simulate(value, value, ..., part)`` for the cells of each combination of values of the
    axes; outputs in batch order."""
    if not axes:
        found = simulate(cells)
        return {
            name: one.cpu().numpy() if isinstance(one, Tensor) else one
            for name, one in found.items()
        }
    first, *rest = axes
    return split_by_axis(
        cells,
        first,
        lambda value, part: split_by_axes(part, rest, lambda *others: simulate(value, *others)),
    )


def missing(experiment: Experiment, runs: int) -> Arrays:
    """NaN for every output."""
    length = {name: len(values) for name, values in experiment.coordinates().items()}
    return {
        output.name: np.full((runs, *(length[dim] for dim in output.dims)), np.nan)
        for output in experiment.outputs()
    }
