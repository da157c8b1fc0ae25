"""Batches taken apart along several axes, and outputs of cells that are not run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from torch import Tensor

from rarefy.core.contracts import Cells, Experiment
from rarefy.sweep.batches import split_by_axis

Arrays = dict[str, np.ndarray]


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
