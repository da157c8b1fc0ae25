"""What the studies of errors share: how "small" and "of order 1" are read, training with tests on
the way, grids with cells that are not run, judging the worst of several cases, tables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Cost, Experiment
from rarefy.core.errors import bad_value
from rarefy.core.picture import Table
from rarefy.data.granularity_labels import Labels
from rarefy.measure.granularity import CHUNK, Answers
from rarefy.measure.statistics import (
    OMEGA,
)
from rarefy.studies.granularity.experiment import GranularityExperiment, Trial
from rarefy.studies.granularity.variations import AS_CHOSEN
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.words import seeds_in_words, shown
from rarefy.sweep.batches import split_by_axis
from rarefy.train.descent import State, Tracker, Trajectory

SMALL = 0.05
"""o(1), of an error or of a training loss: one in twenty, a tenth of chance. A reader of a picture
sees such a curve on the ground; a network with one feature in twenty unseen passes."""
CHANCE = 0.5
"""Error of tossing a coin on the coarse question."""
ORDER_ONE = OMEGA * CHANCE
"""Omega(1), of an error: a quarter of chance."""
LABELS = ("coarse", "fine")
ROLES = {"coarse": "minority", "fine": "majority", "one label a sample": "mixed"}
"""Colours: the same for these labels in all pictures of the laboratory."""

Arrays = dict[str, np.ndarray]


# ------------------------------------------------------------------------------- training and tests


@dataclass(frozen=True)
class Learnt:
    """A training with tests on the way: ``reads[name]``, (run, read), of ``MEASURES``; answers to
    hard samples at the end."""

    reads: dict[str, Tensor]
    hard: Answers
    trajectory: Trajectory

    def outputs(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Some of ``MEASURES``, (run, read) each, and where a run was lost, (run,)."""
        lost = {NONFINITE_STEP.name: self.trajectory.nonfinite_step}
        return {name: self.reads[name] for name in names} | lost


MEASURES = {
    "loss": "training loss of the batch before the last update",
    "easy_error": "share of fresh easy samples on the wrong side",
    "hard_error": "share of fresh hard samples on the wrong side",
    "easy_label_error": "share of fresh easy samples with the wrong label",
    "hard_label_error": "share of fresh hard samples with the wrong label",
    "easy_margin": "score of the right side minus that of the wrong one, easy samples, mean",
    "hard_margin": "score of the right side minus that of the wrong one, hard samples, mean",
}
MAIN_MEASURES = ("loss", "easy_error", "hard_error")
"""Those that every study keeps."""


def learn(
    study: GranularityExperiment,
    cells: Cells,
    context: Context,
    labels: Labels,
    samples: int,
    reads: Sequence[int],
) -> Learnt:
    """Train cells of one shape, tested after each number of updates in ``reads``."""
    experiment = study.setup(cells, context, labels, samples)
    return learnt(study, experiment, context, reads)


def learnt(
    study: GranularityExperiment, experiment: Trial, context: Context, reads: Sequence[int]
) -> Learnt:
    last: list[Answers] = []
    tracker = tests(experiment, study.test_each, last)
    trajectory = experiment.train(context, study.steps, {"tests": tracker}, reads)
    return Learnt(named(trajectory.records["tests"]), last[-1], trajectory)


def tests(experiment: Trial, each: int, last: list[Answers] | None = None) -> Tracker:
    """A tracker of ``MEASURES``, (run, measure); answers to hard samples are put into ``last``."""

    def look(state: State) -> Tensor:
        easy, hard = (experiment.test(state.parameters, each, kind) for kind in (False, True))
        if last is not None:
            last.append(hard)
        found = [
            state.loss.to(easy.margin),
            easy.error,
            hard.error,
            easy.label_error,
            hard.label_error,
            easy.margin.mean(dim=1),
            hard.margin.mean(dim=1),
        ]
        return torch.stack(found, dim=1)

    return look


def named(records: Tensor) -> dict[str, Tensor]:
    """Records of ``tests``, (run, read, measure), by name."""
    return dict(zip(MEASURES, records.unbind(dim=2), strict=True))


def both_labels(coarse: dict[str, Tensor], fine: dict[str, Tensor]) -> dict[str, Tensor]:
    """Outputs of the two networks of a cell, with the axis ``labels`` after ``run``. A cell is lost
    where the first of them is, or else the second."""
    found = {name: torch.stack([coarse[name], fine[name]], dim=1) for name in coarse}
    first, second = found[NONFINITE_STEP.name].unbind(dim=1)
    return found | {NONFINITE_STEP.name: torch.where(first >= 0, first, second)}


def check_reads(reads: Sequence[int], steps: int) -> None:
    if not reads or min(reads) < 0 or max(reads) != steps:
        raise bad_value("reads", tuple(reads), f"must lie in 0..steps={steps} and have steps too")


# -------------------------------------------------------------------------------------------- cells


def apart(cells: Cells, axes: Sequence[str], simulate: Callable[..., Arrays]) -> Arrays:
    """``simulate(value, value, ..., part)`` for every combination of values of the axes."""
    if not axes:
        return simulate(cells)
    first, *rest = axes
    return split_by_axis(
        cells,
        first,
        lambda value, part: apart(part, rest, lambda *others: simulate(value, *others)),
    )


def cost_of_grid(
    study: GranularityExperiment, outputs: int, most: int, noisy: bool, steps: int
) -> Cost:
    """Memory and work of a cell with so many outputs and subclasses a side, the largest there is;
    ``noisy``: noise wakes all neurons, so that each sees all patches.

    Cells of a batch that differ in shape are trained one after the other, and a batch has as many
    of one shape as it has times the points of the grid: a cell's share of the memory is what one
    run needs over that number. (Variations may double the neurons or the patches.)
    """
    samples = max(study.batch, 2 * most * min(study.test_each, CHUNK))
    seen = samples * (study.patches if noisy else 2 * study.feature_patches + 2)
    numbers = (
        outputs * study.neurons * (6 * study.d + 4 * seen) + 3 * samples * study.patches * study.d
    )
    points = math.prod(len(getattr(study, axis)) for axis in study.axes)
    return Cost(math.ceil(2 * 4 * numbers / points), steps)


def only(
    study: Experiment,
    cells: Cells,
    context: Context,
    wanted: Callable[..., bool],
    run: Callable[..., Arrays],
) -> Arrays:
    """``run(value, ..., part, context)`` of the cells at which ``wanted(value, ...)``, a value an
    axis; all outputs of the others are NaN. A grid is a product of axes, and not every variation
    is worth all of it. Progress adds up to the declared cost all the same."""
    length = {name: len(values) for name, values in study.coordinates().items()}
    found = {
        output.name: np.full((len(cells), *(length[dim] for dim in output.dims)), np.nan)
        for output in study.outputs()
    }
    found[NONFINITE_STEP.name] = np.full(len(cells), -1)
    done = 0.0

    def advance(amount: float) -> None:
        nonlocal done
        done += amount
        context.advance(amount)

    counted = dataclasses.replace(context, advance=advance)
    places = zip(*(cells.values[axis].tolist() for axis in study.axes), strict=True)
    rows = np.flatnonzero([wanted(*place) for place in places])
    if len(rows):
        parts = apart(cells.take(rows), study.axes, lambda *at: run(*at, counted))
        for name, values in parts.items():
            found[name][rows] = values
    left = len(cells) * study.cost().steps_per_cell - done
    if left:
        context.advance(left)
    return found


# ----------------------------------------------------------------------------------------- verdicts


# ------------------------------------------------------------------------------------------- tables


def sensitivity_table(
    results: xr.Dataset, columns: Mapping[str, xr.DataArray], caption: str
) -> Table:
    """One row a variation; columns have the dimensions variation and seed."""
    rows = []
    for variation in results["variation"].values:
        values = (by_seed(column.sel(variation=variation)) for column in columns.values())
        rows.append((str(variation), *(shown(each) for each in values)))
    return Table(
        "sensitivity",
        "What changes when the setting does",
        f"{caption} One thing is changed at a time, all else is {AS_CHOSEN!r}; means with 95 % "
        f"intervals over {seeds_in_words(results)}.",
        ("variation", *columns),
        rows,
    )
