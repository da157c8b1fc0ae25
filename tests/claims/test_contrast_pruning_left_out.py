"""What verdicts of P1-P5 leave out: runs, settings and neurons that a claim does not speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from pruning_as_claimed import (
    AS_CLAIMED,
    JUDGED,
    LAST,
    SEEDS,
    judged,
    other_rate,
    rare_rate,
)
from pruning_results import START, Made, by_group, outcomes, pruning

from rarefy.pruning.masks import kept_count
from rarefy.theory.contrastive import stage_1_growth, uniform_attention_moment

pytestmark = pytest.mark.usefixtures("eager")
RESTLESS = 10.0
"""times the squared weight of its unpruned twin: a run that has outgrown it"""


def restless(c: xr.Dataset, seeds: int) -> xr.DataArray:
    return (c["alpha"] == 0.3) & (c["read"] == LAST) & (c["seed"] < seeds)


def test_runs_that_grow_without_rest_are_left_out_of_p2_and_p3() -> None:
    """One seed has outgrown its twin, and its rare features are at odds with the claims."""

    def spoiled(name: str, value: float) -> Made:
        return lambda c: xr.where(
            restless(c, 1) & (c["group"] == "minority"), value, AS_CLAIMED[name](c)
        )

    def energy(c: xr.Dataset) -> xr.DataArray:
        wild = xr.where(c["group"] == "minority", 1e4 * c["eps_min"], 1.01 * RESTLESS)
        return xr.where(restless(c, 1), wild, AS_CLAIMED["energy"](c))

    verdicts = judged(energy=energy, pure=spoiled("pure", 0.0))
    assert {verdict.outcome for verdict in verdicts} == {"holds"}
    for verdict in verdicts:
        at_odds = "alpha=0.3" in verdict.setting and f"step {LAST}" in verdict.setting
        note = "3 of 75 runs grow without rest and are left out"
        assert (note in verdict.note) == (at_odds and verdict.claim in ("P2", "P3"))


def test_where_no_run_comes_to_rest_p2_and_p3_say_nothing() -> None:
    def energy(c: xr.Dataset) -> xr.DataArray:
        return xr.where(restless(c, SEEDS), 1.01 * RESTLESS, AS_CLAIMED["energy"](c))

    verdicts = judged(energy=energy)
    for claim in ("P2", "P3"):
        assert outcomes(verdicts, claim, "alpha=0.1") == {"holds"}
        late = [v for v in verdicts if v.claim == claim and f"alpha=0.3, step {LAST}" in v.setting]
        assert late and {v.outcome for v in late} == {"inconclusive"}
    assert outcomes(verdicts, "(18)", "alpha=0.3") == {"holds"}  # a bound on all runs


WIDE = pruning(
    alpha=(0.0, 0.1, 0.3, 0.6), eps_min=(0.2, 0.4, 0.8, 1.0), start=(0,), bias_scale=(0.0,)
)


@pytest.mark.parametrize(
    ("beyond", "random", "theorem"),
    [("alpha", "fails", "holds"), ("eps_min", "holds", "holds"), ("within", "fails", "fails")],
)
def test_p1_and_p5_leave_out_what_the_theorem_does_not_speak_of(
    beyond: str, random: str, theorem: str
) -> None:
    """Rare features with 4/9 of the neurons: alpha = 0.6 is too much in the theorem's state, and
    eps_min = 1 is no rare feature anywhere."""
    places: dict[str, Made] = {
        "alpha": lambda c: c["alpha"] == 0.6,
        "eps_min": lambda c: c["eps_min"] == 1.0,
        "within": lambda c: (c["alpha"] == 0.1) & (c["eps_min"] == 0.4),
    }
    there = places[beyond]
    verdicts = judged(
        WIDE,
        extra_growth=by_group(
            lambda c: rare_rate(c) * xr.where(there(c), 0.01, 2.0), lambda c: other_rate(c) / 2
        ),
        positive=lambda c: (
            0.5
            + (c["network"] == "masked")
            * xr.where(c["contains"] == "contains", xr.where(there(c), 9.0, -0.2), -0.01)
            + 0.0 * c["alpha"]
        ),
    )
    for begin, outcome in (("random weights", random), ("theorem's state", theorem)):
        assert outcomes(verdicts, "P1 rare growth over (15)", begin) == {outcome}
        assert outcomes(verdicts, "P5 change of the positive logit", begin) == {outcome}


def test_a_few_rare_neurons_that_are_all_pruned_are_an_overlap_of_one() -> None:
    """Over the smaller set: 1.8 rare neurons cannot be half of eleven pruned ones."""
    rare = 0.05 * JUDGED.neurons

    def among(c: xr.Dataset) -> xr.DataArray:
        alpha = torch.tensor(c["alpha"].values.tolist(), dtype=torch.float64)
        kept = kept_count(alpha, JUDGED.neurons)
        return rare / c["alpha"].copy(data=JUDGED.neurons - kept.numpy()).clip(min=1)

    found = judged(neurons_rare=lambda c: 0.05, pruned_rare=among)
    (overlap,) = [v for v in found if "overlap over the smaller set" in v.setting]
    assert overlap.outcome == "holds" and overlap.measured == "mean 1 [1, 1]"
    none = judged(neurons_rare=lambda c: 0.0, pruned_rare=lambda c: 0.0)
    assert outcomes(none, "P4", "over the smaller set") == {"inconclusive"}


def test_lucky_neurons_of_lost_runs_are_no_lucky_neurons_that_were_spared() -> None:
    def lost(c: xr.Dataset) -> Any:
        return xr.where(c["seed"] < 3, np.nan, 2.0)

    (verdict,) = [v for v in judged(lucky_pruned=lost) if "rare lucky" in v.setting]
    assert verdict.measured.startswith("132 of 132")


def test_in_the_theorems_state_only_the_first_start_is_judged_and_p4_is_not() -> None:
    study = pruning(alpha=(0.0, 0.1), eps_min=(0.2, 0.8), bias_scale=(0.0,))
    assert len(study.start) == 2
    found = [v for v in judged(study) if "theorem's state" in v.setting]
    assert found and all("start 0" in verdict.setting for verdict in found)
    assert {verdict.claim for verdict in found} == {"P1", "P2", "P3", "P5"}
    names = [f"{v.claim} {v.setting}" for v in judged(study)]
    assert len(set(names)) == len(names)


def test_a_lost_run_is_not_at_rest() -> None:
    def energy(c: xr.Dataset) -> xr.DataArray:
        return xr.where(restless(c, 2), np.nan, AS_CLAIMED["energy"](c))

    late = [v for v in judged(energy=energy) if f"alpha=0.3, step {LAST}" in v.setting]
    assert late and all("6 of 75 runs grow without rest" in v.note for v in late)


@pytest.mark.parametrize(
    ("begin", "start", "state", "early"),
    [
        ("theorem", 0, 0, 4),
        ("random", 0, 4, 4),  # never untrained random weights
        ("random", 4, 4, START),
        ("theorem", 5, START, START),
        ("random", 11, 12, 12),
    ],
)
def test_the_state_that_is_judged(begin: str, start: int, state: int, early: int) -> None:
    few: dict[str, Any] = {"alpha": (0.0, 0.1), "eps_min": (0.2, 0.8), "bias_scale": (0.0,)}
    found = judged(pruning(begin=(begin,), start=(start,), **few))
    (growth,) = [v for v in found if "rare features gain more than others" in v.setting]
    assert f"same state, step {state}; mean over eps_min 0.2, 0.8" in growth.note
    nearer = [v.setting for v in found if "nearer 0 than without pruning" in v.setting]
    assert len(nearer) == len({early, 12}) and f"alpha=0.1, step {early}," in nearer[0]


@pytest.mark.parametrize("tau", [1.0, 0.5])
@pytest.mark.parametrize("loss_form", ["plain", "times-tau"])
def test_the_growth_constant_is_that_of_stage_1_for_either_form_of_the_loss(
    loss_form: str, tau: float
) -> None:
    study = pruning(tau=tau, loss_form=loss_form)
    moment = uniform_attention_moment(1.0, study.activation, study.tokens, study.spread)
    factor = tau if loss_form == "times-tau" else 1.0
    growth = stage_1_growth(moment, study.lr, tau, study.batch, factor)
    assert study.growth_constant == pytest.approx((growth - 1) / study.lr)
