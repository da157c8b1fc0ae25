"""Verdicts of P1-P5 on results with known answers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import xarray as xr
from pruning_results import Made, by_group, fabricated, one, outcomes, pruning, with_pruning

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import bootstrap_interval
from rarefy.studies.contrastive._pruning_reading import RESTLESS, growth_constant, pruned_number
from rarefy.studies.contrastive.contrast_pruning import ContrastPruning
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order

pytestmark = pytest.mark.usefixtures("eager")
JUDGED = pruning(alpha=(0.0, 0.1, 0.3), eps_min=(0.2, 0.4, 0.8), start=(0,), bias_scale=(0.0,))
LAST, SEEDS = JUDGED.reads[-1], 25  # with fewer a share of 0.95 is never certain


def rare_rate(c: xr.Dataset) -> xr.DataArray:
    constant = growth_constant(JUDGED)
    return minority_rate_order(c["eps_min"], c["alpha"], JUDGED.lr, constant)


def other_rate(c: xr.Dataset) -> xr.DataArray:
    constant = growth_constant(JUDGED)
    return other_rate_order(c["eps_min"], c["alpha"], JUDGED.lr, constant, JUDGED.d)


def begins(random: Made, theorem: Made) -> Made:
    return lambda c: xr.where(c["begin"] == "theorem", theorem(c), random(c))


def logits(contains: float, lacks: float, control: tuple[float, float] = (-0.1, -0.1)) -> Made:
    """The positive logit, and by how much each mask changes it on samples of each kind."""

    def change(c: xr.Dataset, values: tuple[float, float]) -> xr.DataArray:
        return xr.where(c["contains"] == "contains", *values)

    return lambda c: (
        0.5
        + (c["network"] == "masked") * change(c, (contains, lacks))
        + (c["network"] == "random") * change(c, control)
    )


def scores(share: float, fall: float, by_chance: float, size: float) -> Made:
    return lambda c: xr.zeros_like(c["score"], dtype=float) + [share, fall, by_chance, size]


PURE_AT_FIRST = JUDGED.neurons / JUDGED.d
AS_CLAIMED: dict[str, Made] = {
    "energy": by_group(with_pruning(one, lambda c: c["eps_min"] ** 2), one),
    "weight": by_group(with_pruning(one, lambda c: c["eps_min"]), one),
    "pure": begins(
        by_group(with_pruning(lambda c: PURE_AT_FIRST, lambda c: 0.0), one),
        lambda c: PURE_AT_FIRST,
    ),
    "extra_growth": by_group(lambda c: 2 * rare_rate(c), lambda c: other_rate(c) / 2),
    "pruned_rare": lambda c: 0.9,
    "neurons_rare": lambda c: 0.4,
    "lucky_pruned": lambda c: 2.0,
    "lucky": lambda c: 2.0,
    "positive": logits(-0.2, -0.01),
    "negative": one,
    "predicted_fall": lambda c: 0.2,
    "simple_fall": lambda c: 0.2,
    "telling": scores(0.8, 0.9, 0.5, 0.6),
    "loss": one,
    "neuron": one,
}
"""Theorem 3.2 to the letter."""


def judged(study: ContrastPruning = JUDGED, **changed: Made) -> list[Verdict]:
    few = partial(bootstrap_interval, resamples=20)  # the seeds are all alike: 20 are as good
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rarefy.studies.contrastive._pruning_strength.bootstrap_interval", few)
        patch.setattr("rarefy.studies.contrastive._exponents.bootstrap_interval", few)
        return study.verdicts(fabricated(study, SEEDS, AS_CLAIMED | changed), "tiny")


def test_results_as_claimed_hold_in_every_verdict() -> None:
    verdicts = judged()
    assert {verdict.outcome for verdict in verdicts} == {"holds"}
    assert {verdict.claim for verdict in verdicts} == {"P1", "P2", "P3", "P4", "P5"}
    rare = next(v for v in verdicts if "rare growth over (15)" in v.setting)
    assert rare.measured == "mean 2 [2, 2]" and rare.predicted == "at least 0.25"


EIGHTH, FLAT, SQUARED = (
    by_group(lambda c: rare_rate(c) / 8, lambda c: other_rate(c) / 2),
    by_group(lambda c: 2 * rare_rate(c) / c["alpha"].clip(min=0.1), lambda c: 0.0 * other_rate(c)),
    by_group(lambda c: 20 * rare_rate(c) * c["alpha"], lambda c: other_rate(c) / 2),
)
WRONG_WORLDS: dict[str, tuple[dict[str, Made], tuple[str, ...]]] = {
    "half of a quarter of (15)": ({"extra_growth": EIGHTH}, ("P1 rare growth over (15)",)),
    "the others eight times (16)": (
        {"extra_growth": by_group(lambda c: 2 * rare_rate(c), lambda c: 8 * other_rate(c))},
        ("P1 other growth over (16)",),
    ),
    "the others gain more": (
        {"extra_growth": by_group(lambda c: 2 * rare_rate(c), lambda c: 3 * rare_rate(c))},
        ("P1 other growth over (16)", "P1 rare features gain more"),
    ),
    "growth without alpha, which a lower bound allows": ({"extra_growth": FLAT}, ()),
    "growth with alpha squared": (
        {"extra_growth": SQUARED},
        ("P1 rare growth, exponent in alpha",),
    ),
    "growth with eps cubed": (
        {
            "extra_growth": by_group(
                lambda c: 10 * rare_rate(c) * c["eps_min"], lambda c: other_rate(c) / 2
            )
        },
        ("P1 rare growth, exponent in eps",),
    ),
    "pruning leaves the energies": (
        {"energy": by_group(lambda c: c["eps_min"] ** 2, one)},
        (
            "P2 exponent in eps_min, energy",
            "P2 exponent nearer 0 than without pruning, energy",
            "P2 rare over frequent: largest over smallest in eps, energy",
        ),
    ),
    "uneven without a trend": (
        {
            "energy": by_group(
                with_pruning(
                    lambda c: xr.where(c["eps_min"] == 0.4, 2.0, 1.0), lambda c: c["eps_min"] ** 2
                ),
                one,
            )
        },
        ("P2 rare over frequent: largest over smallest in eps, energy",),
    ),
    "pruning makes weights less equal": (
        {"weight": by_group(with_pruning(lambda c: c["eps_min"], one), one)},
        (
            "P2 exponent in eps_min, weight of own neurons",
            "P2 exponent nearer 0 than without pruning, weight of own neurons",
            "P2 rare over frequent: largest over smallest in eps, weight of own neurons",
        ),
    ),
    "rare neurons above tau": (
        {"weight": by_group(with_pruning(lambda c: 1.2, lambda c: c["eps_min"]), one)},
        ("P2 weight of rare neurons at most tau (18)",),
    ),
    "few pure neurons": (
        {
            "pure": begins(
                by_group(with_pruning(lambda c: 0.4, lambda c: 0.0), one), lambda c: PURE_AT_FIRST
            )
        },
        ("P3 pure neurons of a rare feature over m/d",),
    ),
    "fewer pure neurons": (
        {"pure": begins(with_pruning(lambda c: 4.0, lambda c: 5.0), lambda c: PURE_AT_FIRST)},
        ("P3 more pure neurons of rare features",),
    ),
    "neurons of the theorem's state do not stay pure": (
        {"pure": begins(AS_CLAIMED["pure"], with_pruning(lambda c: 3.0, lambda c: 4.0))},
        ("P3 pure neurons of a rare feature, with over without",),
    ),
    "chance decides who is pruned": (
        {"pruned_rare": lambda c: 0.4},
        ("P4 rare neurons over-represented", "P4 pruned and rare neurons: overlap"),
    ),
    "a little more than chance": (
        {"pruned_rare": lambda c: 0.45},
        ("P4 pruned and rare neurons: overlap",),
    ),
    "lucky neurons are spared": ({"lucky_pruned": lambda c: 0.0}, ("P4 the paper's rare lucky",)),
    "all samples notice": (
        {"positive": logits(-0.2, -0.2)},
        ("P5 change on the other samples", "P5 falls more on rare-feature samples"),
    ),
    "random neurons do as much": (
        {"positive": logits(-0.2, -0.01, control=(-0.2, -0.01))},
        ("P5 falls more on rare-feature samples",),
    ),
    "twice (211)": (
        {"predicted_fall": lambda c: 0.1},
        ("P5 fall of the logit over its first-order value (211)",),
    ),
    "twice (213)": (
        {"simple_fall": lambda c: 0.1},
        ("P5 fall of the logit over its first-order value (213)",),
    ),
    "random neurons tell as much": (
        {"telling": scores(0.8, 0.9, 0.9, 0.6)},
        ("P5 the fall tells rare-feature samples better than with random neurons",),
    ),
    "the size tells as much": (
        {"telling": scores(0.8, 0.9, 0.5, 0.9)},
        ("P5 the fall tells rare-feature samples better than the size",),
    ),
}


@pytest.mark.parametrize("world", WRONG_WORLDS)
def test_a_world_that_differs_in_one_thing_fails_there_and_nowhere_else(world: str) -> None:
    changed, failing = WRONG_WORLDS[world]
    verdicts = judged(**changed)
    for verdict in verdicts:
        name = f"{verdict.claim} {verdict.setting}"
        expected = "fails" if name.startswith(failing) else "holds"
        assert verdict.outcome == expected, (name, verdict.measured, verdict.note)
    for start in failing:
        assert any(f"{v.claim} {v.setting}".startswith(start) for v in verdicts), start


def test_a_logit_that_falls_on_the_other_samples_alone_does_not_hold_anywhere_in_p5() -> None:
    """It rises on samples with the rare feature: a ratio of the two changes is negative then."""
    verdicts = judged(positive=logits(0.01, -0.2), predicted_fall=lambda c: -0.01)
    assert outcomes(verdicts, "P5", "change of the positive logit on samples") == {"fails"}
    assert "holds" not in outcomes(verdicts, "P5", "change on the other samples over that on these")


def test_no_change_of_the_logit_at_all_holds_nowhere() -> None:
    verdicts = judged(positive=logits(0.0, 0.0))
    assert outcomes(verdicts, "P5", "change of the positive logit on samples") == {"fails"}
    assert outcomes(verdicts, "P5", "change on the other samples") == {"inconclusive"}


def test_a_bound_is_judged_where_it_is_tightest() -> None:
    def weak_at_one_place(c: xr.Dataset) -> xr.DataArray:
        there = (c["alpha"] == 0.1) & (c["eps_min"] == 0.4)
        return rare_rate(c) * xr.where(there, 0.1, 2.0)

    verdicts = judged(extra_growth=by_group(weak_at_one_place, lambda c: other_rate(c) / 2))
    found = [v for v in verdicts if "rare growth over (15)" in v.setting]
    assert len(found) == 2  # two beginnings
    for verdict in found:
        assert verdict.outcome == "fails" and verdict.measured.startswith("mean 0.1 ")
        assert "at alpha=0.1, eps_min=0.4, where it is tightest" in verdict.note


def test_results_without_a_value_hold_nothing() -> None:
    nothing = {name: (lambda c: np.nan) for name in AS_CLAIMED}
    assert {verdict.outcome for verdict in judged(**nothing)} == {"inconclusive"}


# -------------------------------------------------------------------------- what is left out of it


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
    found = judged(
        neurons_rare=lambda c: 0.05,
        pruned_rare=lambda c: rare / pruned_number(JUDGED, c["alpha"]).clip(min=1),
    )
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
