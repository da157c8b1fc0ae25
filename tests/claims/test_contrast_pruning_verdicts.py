"""Verdicts of P1-P5 on results with known answers."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from pruning_as_claimed import (
    AS_CLAIMED,
    PURE_AT_FIRST,
    begins,
    judged,
    logits,
    other_rate,
    rare_rate,
    scores,
)
from pruning_results import Made, by_group, one, outcomes, with_pruning

pytestmark = pytest.mark.usefixtures("eager")


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
