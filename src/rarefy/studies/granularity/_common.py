"""What the studies of errors share: how "small" and "of order 1" are read, training with tests on
the way, grids with cells that are not run, judging the worst of several cases, tables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Cost, Study, Verdict
from rarefy.core.errors import bad_value
from rarefy.core.picture import Table
from rarefy.data.granularity_labels import Labels
from rarefy.measure.granularity import CHUNK, Answers
from rarefy.measure.statistics import (
    OMEGA,
    Identity,
    Interval,
    bootstrap_interval,
    judge_bound,
    mean_interval,
)
from rarefy.studies._apart import simulate_apart
from rarefy.studies._worst_of import corrected_level, worst_of
from rarefy.studies.granularity._granularity import Experiment, GranularityStudy
from rarefy.studies.granularity._variations import AS_CHOSEN
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
    study: GranularityStudy,
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
    study: GranularityStudy, experiment: Experiment, context: Context, reads: Sequence[int]
) -> Learnt:
    last: list[Answers] = []
    tracker = tests(experiment, study.test_each, last)
    trajectory = experiment.train(context, study.steps, {"tests": tracker}, reads)
    return Learnt(named(trajectory.records["tests"]), last[-1], trajectory)


def tests(experiment: Experiment, each: int, last: list[Answers] | None = None) -> Tracker:
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
    return simulate_apart(
        cells,
        first,
        lambda value, part: apart(part, rest, lambda *others: simulate(value, *others)),
    )


def cost_of_grid(study: GranularityStudy, outputs: int, most: int, noisy: bool, steps: int) -> Cost:
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
    study: Study,
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


def judge_worst(
    identity: Identity,
    cases: Mapping[str, np.ndarray],
    bound: float,
    side: Literal["at_least", "at_most"],
    note: str = "",
) -> Verdict:
    """Every case is on the right side of ``bound``: judged by the case on which that stands or
    falls, with intervals that cover all together. A case is the mean of (seed,), or of (seed,
    point) the mean at the point where it is furthest from what is claimed."""
    if not cases:
        return judge_bound(identity, [], bound, side, note=note or "no such cases were run")
    level = corrected_level(len(cases))
    found = {name: _extreme(values, side, level) for name, values in cases.items()}
    floor, ceiling = (bound, np.inf) if side == "at_least" else (-np.inf, bound)
    low, high = ([each[place] for each in found.values()] for place in (1, 2))
    name = list(found)[worst_of(low, high, floor, ceiling)]
    said = f"decided at {name}, the worst of {len(cases)} cases" if len(cases) > 1 else name
    return judge_bound(identity, found[name], bound, side, note=f"{said}; {note}" if note else said)


def _extreme(values: np.ndarray, side: str, level: float) -> Interval:
    if values.ndim == 1:
        return mean_interval(values, level)
    pick = np.min if side == "at_least" else np.max
    return bootstrap_interval(values, lambda drawn: float(pick(drawn.mean(axis=0))), level)


def undecided(verdict: Verdict, why: str) -> Verdict:
    """The same measurement, which decides nothing because a premise is not met."""
    note = f"premise not met: {why}"
    joined = f"{verdict.note}; {note}" if verdict.note else note
    return dataclasses.replace(verdict, outcome="inconclusive", note=joined)


def by_seed(values: xr.DataArray) -> np.ndarray:
    """(seed, ...) in the order in which the other dimensions are named, none left out."""
    rest = sorted(str(dim) for dim in values.dims if dim != "seed")
    return np.asarray(values.transpose("seed", *rest).values, dtype=float)


# ------------------------------------------------------------------------------------------- tables


def seeds_in_words(results: xr.Dataset) -> str:
    count = results.sizes["seed"]
    return "1 seed" if count == 1 else f"{count} seeds"


def shown(values: np.ndarray) -> str:
    """A mean with its 95 % interval."""
    mean = mean_interval(values)
    if mean.n == 0:
        return "not run"
    if mean.n == 1:
        return f"{mean.mean:.3f}"
    return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"


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
