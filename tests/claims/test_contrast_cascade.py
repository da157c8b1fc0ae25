"""P7: the watch, the verdicts on cascades drawn by hand, and the study at a small size."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from rarefy.core.contracts import Context, Verdict
from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.sparse_coding import dictionary
from rarefy.studies.contrastive.cascade.phases import (
    Phase,
    growth,
    mean_between,
    minimum_at_random,
    random_minimum,
)
from rarefy.studies.contrastive.cascade.study import ContrastCascade
from rarefy.studies.contrastive.cascade.watch import LevelWatch
from rarefy.sweep.grid import grid_of
from rarefy.train.descent import State

pytestmark = pytest.mark.usefixtures("eager")
D, NEURONS = 6, 12
"""three levels of two features, two neurons each"""


def atoms(runs: int) -> torch.Tensor:
    return dictionary(Draws(list(range(runs)), dtype=torch.float64), 10, D)


def pure(matrix: torch.Tensor, coefficients: list[float]) -> torch.Tensor:
    """Neuron i carries feature i mod 6 with the given weight."""
    scale = torch.tensor(coefficients, dtype=torch.float64).repeat(NEURONS // D)
    return scale[None, :, None] * matrix.transpose(1, 2).repeat(1, NEURONS // D, 1)


# --------------------------------------------------------------------------------------- the watch


def test_strength_of_pure_neurons_is_their_weight() -> None:
    matrix = atoms(2)
    weights = pure(matrix, [4.0, 2.0, 1.0, 1.0, 0.5, 0.25])
    strength = LevelWatch(matrix, weights, 2, 0).strength(weights)
    expected = torch.tensor([[3.0, 1.0, 0.375]], dtype=torch.float64).expand(2, 3)
    assert torch.allclose(strength, expected)


def test_meetings_are_the_first_steps_within_five_percent_counted_from_the_start() -> None:
    matrix = atoms(1)
    far = pure(matrix, [1, 1, 0.5, 0.5, 0.25, 0.25])
    watch = LevelWatch(matrix, far, 2, start=3)

    def see(step: int, middle: float, rare: float) -> None:
        weights = pure(matrix, [1, 1, middle, middle, rare, rare])
        watch(State(step, {"weights": weights}, torch.zeros(1)))

    see(2, 0.5, 0.5)  # before the start: not counted
    see(3, 0.5, 0.4)
    assert watch.met.tolist() == [[-1, -1]]
    see(7, 0.6, 0.571)  # 0.951 of the next level
    see(8, 0.6, 0.3)  # apart again: the first meeting stands
    see(9, 0.949, 0.3)
    assert watch.met.tolist() == [[4, -1]]
    see(10, 0.951, 0.3)
    assert watch.met.tolist() == [[4, 7]]
    together = pure(matrix, [1, 1, 0.5, 0.5, 0.5, 0.5])
    assert LevelWatch(matrix, together, 2, start=0).met.tolist() == [[0, -1]]


def test_composition_counts_chosen_neurons_by_the_level_of_their_strongest_feature() -> None:
    matrix = atoms(2)
    weights = pure(matrix, [1.0] * D)
    chosen = torch.zeros(2, NEURONS, dtype=torch.bool)
    chosen[0, [0, 4, 5, 10]] = True  # neuron i carries feature i mod 6: levels 0, 2, 2, 2
    watch = LevelWatch(matrix, weights, 2, 0)
    shares = watch.composition(weights, chosen)
    assert shares[0].tolist() == [0.25, 0.0, 0.75]
    assert shares[1].isnan().all()
    assert torch.allclose(watch.purity(weights), torch.ones(2, dtype=torch.float64))


# ------------------------------------------------------------------------------------- the verdicts


def test_growth_and_means_between_two_times_of_each_run() -> None:
    read = np.array([0, 10, 20])
    line = np.array([[0.0, 1.0, 4.0], [0.0, 1.0, 4.0]])
    start, end = np.array([0.0, 5.0]), np.array([10.0, 15.0])
    assert np.allclose(growth(read, line, start, end), [0.1, 0.2])
    assert np.isnan(growth(read, line, start, np.array([0.0, np.nan]))).all()
    share = np.stack([line, 1 - line], axis=2)
    assert np.allclose(mean_between(read, share, start * 0, end + 5)[:, 0], [0.5, 0.5])
    # a phase shorter than the distance of two reads is told by the read it begins with
    assert np.allclose(mean_between(read, share, np.zeros(2), np.ones(2))[:, 0], 0.0)
    assert np.isnan(mean_between(read, share, start, np.full(2, np.nan))).all()


def test_phases_end_with_the_meeting_and_are_equally_long() -> None:
    phase = Phase.of(np.array([10, 40, -1, 60]), 60)
    assert phase.end.tolist() == [10, 40, 60, 60]
    assert phase.later[:2].tolist() == [20, 60] and np.isnan(phase.later[2:]).all()
    assert phase.any_after and not Phase.of(np.array([-1]), 60).any_after
    assert phase.who_met == "; only 2 of 4 runs met"
    assert Phase.of(np.array([10, 20]), 60).who_met == ""


SEEDS = 100
STUDY = ContrastCascade(
    begin=("theorem",), bias_scale=(1.0,), alpha=(0.0, 0.2), reads=tuple(range(0, 801, 10))
)


def drawn(pruned: bool, order: str) -> dict[str, Any]:
    """Trajectories as the remark has them ('claimed'), or with the middle level rising first."""
    read = np.array(STUDY.reads, dtype=float)
    speed = 0.01 if pruned else 0.002
    rare = np.minimum(speed * read, np.log(2))
    meeting = int(np.ceil(np.log(0.95 * 2) / speed))
    after = np.maximum(read - np.log(2) / speed, 0) * speed
    middle, second = after, meeting + int(np.ceil(np.log(0.95 * 2) / speed))
    if order == "reversed":
        middle, second = np.minimum(0.05 * read, np.log(2)), 14
    both = np.minimum(rare, np.log(2)) + (after if order == "claimed" else 0)
    log_strength = np.stack([0 * read, middle - np.log(2), both - np.log(4)], axis=1)
    phase = (read < meeting).astype(float)[:, None]
    share = phase * np.array([0, 0, 1.0]) + (1 - phase) * np.array([0, 0.5, 0.5])
    if order == "reversed":
        share = np.broadcast_to(np.array([1.0, 0, 0]), share.shape)
    met = np.array([meeting, second])
    return {
        "strength": np.exp(log_strength),
        "pruned": share if pruned else share * np.nan,
        "met": np.where(met > STUDY.horizon, -1, met),
        "purity": np.ones(len(read)),
    }


def results(order: str) -> xr.Dataset:
    noise = np.random.default_rng(0)
    cells = [drawn(False, order), drawn(True, order)]
    data = {}
    for output in STUDY.outputs():
        values = np.stack([cell[output.name] for cell in cells])  # (alpha, ...)
        values = np.repeat(values[None, None, :, None], SEEDS, axis=3).astype(float)
        if output.name == "strength":
            values = values * np.exp(1e-3 * noise.normal(size=values.shape))
        dims = ("begin", "bias_scale", "alpha", "seed", *output.dims)
        data[output.name] = (dims, values)
    axes = {name: list(getattr(STUDY, name)) for name in STUDY.axes}
    return xr.Dataset(data, {**axes, "seed": np.arange(SEEDS), **STUDY.coordinates()})


def outcomes(order: str) -> dict[str, Verdict]:
    return judged(results(order))


def judged(found: xr.Dataset) -> dict[str, Verdict]:
    return {v.setting.split(",")[0]: v for v in STUDY.verdicts(found, "paper")}


def test_a_cascade_as_claimed_holds_in_every_sentence() -> None:
    found = outcomes("claimed")
    assert len(found) == 10
    assert {name: v.outcome for name, v in found.items() if v.outcome != "holds"} == {}
    # the twin meets 4 times as late or so, unless it runs out of time
    assert found["first meeting earlier than unpruned"].n == SEEDS


def test_a_cascade_in_the_wrong_order_fails() -> None:
    found = outcomes("reversed")
    for name in (
        "meetings from the rarest upward",
        "pruned before the meeting: the rarest",
        "pruned after the meeting: both",
        "next level grows faster after the meeting",
    ):
        assert found[name].outcome == "fails", name


def test_the_smaller_share_at_random_is_that_of_all_draws_written_out() -> None:
    level = [0, 0, 1, 1, 1, 2]  # rarest, next, another
    draws = [
        [sum(level[neuron] == which for neuron in drawn) for which in (0, 1)]
        for drawn in combinations(range(6), 3)
    ]
    once = np.mean([min(draw) / 3 for draw in draws])
    twice = np.mean([min(a + c, b + d) / 6 for a, b in draws for c, d in draws])
    assert np.isclose(random_minimum(2, 3, 1, 3, 1), once)
    assert np.isclose(random_minimum(2, 3, 1, 3, 2), twice)
    # 36 neurons, 20 % of them, 12 a level: towards a third with the number of reads
    few, many, none = minimum_at_random(STUDY, 0.2, np.array([1, 20, 0]))
    assert 0.2 < few < 0.27 < 0.3 < many < 1 / 3 and np.isnan(none)


def test_pruning_at_random_after_the_meeting_is_not_taken_for_the_cascade() -> None:
    found = results("claimed")
    shape = found["pruned"].shape[:-1]
    drawn = np.random.default_rng(1).multivariate_hypergeometric([12, 12, 12], 7, size=shape)
    said = judged(found.assign(pruned=found["pruned"].copy(data=drawn / 7)))
    both = said["pruned after the meeting: both"]
    assert both.interval is not None and both.interval[0] > 0.25  # all that was asked for
    assert both.outcome == "inconclusive" and "no more than at random" in both.note
    more = said["pruned after the meeting: the two rarest more than at random"]
    assert more.outcome == "inconclusive"


def test_a_rise_of_the_most_frequent_level_too_is_not_taken_for_the_cascade() -> None:
    found = results("claimed")
    strength, other = found["strength"].values.copy(), found["strength"].values
    middle = other[..., 1] / other[:, :, :, :, :1, 1]
    strength[:, :, 1, :, :, 0] *= middle[:, :, 1] ** 1.5  # the pruned runs only
    said = judged(found.assign(strength=found["strength"].copy(data=strength)))
    for name in (
        "pruning speeds the next more than the most frequent after the meeting",
        "the meeting adds more to the next than to the most frequent",
    ):
        assert said[name].outcome == "fails", name
    assert said["before the meeting pruning speeds the rarest more"].outcome == "holds"


@pytest.mark.parametrize(("met", "decided"), [(4, False), (5, True)])
def test_fewer_than_five_runs_that_met_decide_nothing(met: int, decided: bool) -> None:
    found = results("reversed")
    found["met"][..., met:, 0] = -1
    said = judged(found)["next level grows faster after the meeting"]
    assert said.n == met and (said.outcome == "fails") == decided
    assert ("fewer than 5 runs" in said.note) == (not decided)


def test_levels_that_have_met_before_are_a_premise_that_fails_and_nothing_more() -> None:
    met = results("claimed")
    met["met"] = xr.zeros_like(met["met"])
    (only,) = STUDY.verdicts(met, "paper")
    assert only.outcome == "fails" and "apart at first" in only.setting


# ---------------------------------------------------------------------------------------- the study


@cache
def measured() -> tuple[ContrastCascade, dict[str, np.ndarray], dict[str, np.ndarray]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    study = ContrastCascade.at(
        "tiny", seeds=4, before=40, steps=110, reads=(0, 10, 20, 30, 70), alpha=(0.0, 0.2)
    )
    assert isinstance(study, ContrastCascade)
    grid = grid_of(study)
    found = study.simulate(grid.cells(np.arange(len(grid))), Context())
    torch.set_num_threads(threads)
    return study, dict(grid.values), found


def rows(**at: Any) -> np.ndarray:
    _, values, _ = measured()
    return np.logical_and.reduce([values[name] == value for name, value in at.items()])


def test_the_theorems_state_is_proportional_to_frequency_and_twins_begin_alike() -> None:
    study, _, found = measured()
    for bias in (0.0, 1.0):
        start = found["strength"][rows(begin="theorem", bias_scale=bias), 0]
        assert np.allclose(start / start[:, :1], study.levels, rtol=0.2)
    for begin in ("theorem", "random"):
        pruned, twin = (found["strength"][rows(begin=begin, alpha=alpha)] for alpha in (0.2, 0.0))
        assert np.array_equal(pruned[:, 0], twin[:, 0])
        assert not np.array_equal(pruned[:, -1], twin[:, -1])


def test_from_the_theorems_state_the_rarest_is_pruned_and_meets_the_next_earlier() -> None:
    _, _, found = measured()
    assert (found["pruned"][rows(begin="theorem", alpha=0.2), 0, -1] == 1).all()
    assert np.isnan(found["pruned"][rows(alpha=0.0)]).all()
    pruned, twin = (
        found["met"][rows(begin="theorem", bias_scale=0.0, alpha=alpha), 0] for alpha in (0.2, 0.0)
    )
    late = np.where(twin < 0, 70, twin)
    assert (pruned > 0).all() and (late - pruned).mean() > 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"levels": (0.5, 1.0)}, "levels=.*each rarer than the one before"),
        ({"levels": (1.0,)}, "levels=.*at least two"),
        ({"levels": (1.0, 0.0)}, "levels=0.0: a feature frequency must be in"),
        ({"per_level": 0}, "per_level=0: must be at least 1"),
        ({"alpha": (0.1, 0.2)}, "alpha=.*needs 0, the unpruned twin"),
        ({"alpha": (0.0, 0.1)}, "alpha=.*and figure_alpha=0.2"),
        ({"alpha": (0.0, 0.2, 1.0)}, "alpha=1.0: the share of neurons left out"),
        ({"begin": ("middle",)}, "begin='middle': must be one of theorem, random"),
        ({"update": "sparse"}, "update='sparse': must be one of"),
        ({"neurons": 5}, "neurons=5: a neuron a feature: at least 6"),
        ({"before": 45}, "before=45: must be in 0..steps-1=44"),
        ({"reads": (5, 10)}, "reads=.*rising steps, the first of them 0"),
        ({"reads": (0, 31)}, "reads=31: at most steps - before = 30"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ContrastCascade.at("tiny", **wrong)
