"""Grids of which not every cell is run: a grid is a product of axes, and not every variation is
worth all of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from torch import Tensor

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Cost, Experiment
from rarefy.measure.granularity import CHUNK
from rarefy.studies.granularity.experiment import GranularityExperiment
from rarefy.sweep.batches import Arrays, missing, split_by_axes


def simulate_only(
    experiment: Experiment,
    cells: Cells,
    context: Context,
    wanted: Callable[..., bool],
    run: Callable[..., Mapping[str, Tensor | np.ndarray]],
) -> Arrays:
    """``run(value, ..., part, context)`` of the cells at which ``wanted(value, ...)``, one value
    per axis; all outputs of the others are NaN. Progress adds up to the declared cost all the
    same."""
    found = missing(experiment, len(cells)) | {NONFINITE_STEP.name: np.full(len(cells), -1)}
    done = 0.0

    def advance(amount: float) -> None:
        nonlocal done
        done += amount
        context.advance(amount)

    counted = replace(context, advance=advance)
    places = zip(*(cells.values[axis].tolist() for axis in experiment.axes), strict=True)
    rows = np.flatnonzero([wanted(*place) for place in places])
    if len(rows):
        parts = split_by_axes(cells.take(rows), experiment.axes, lambda *at: run(*at, counted))
        for name, values in parts.items():
            found[name][rows] = values
    left = len(cells) * experiment.cost().steps_per_cell - done
    if left:
        context.advance(left)
    return found


def cost_of_grid(
    setting: GranularityExperiment, outputs: int, most: int, noisy: bool, steps: int
) -> Cost:
    """Memory and work of a cell with so many outputs and subclasses per side, the largest there is;
    ``noisy``: noise wakes all neurons, so that each sees all patches.

    Cells of a batch that differ in shape are trained one after the other, and a batch has as many
    of one shape as it has times the points of the grid: a cell's share of the memory is what one
    run needs over that number. (Variations may double the neurons or the patches.)
    """
    samples = max(setting.batch, 2 * most * min(setting.test_each, CHUNK))
    seen = samples * (setting.patches if noisy else 2 * setting.feature_patches + 2)
    neurons = outputs * setting.neurons * (6 * setting.d + 4 * seen)
    numbers = neurons + 3 * samples * setting.patches * setting.d
    points = math.prod(len(getattr(setting, axis)) for axis in setting.axes)
    return Cost(math.ceil(2 * 4 * numbers / points), steps)
