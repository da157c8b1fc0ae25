"""Verdicts of P2-P5 on results with known answers: 000 Theorem 3.2 to the letter, or not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import xarray as xr
from made_up_results import Made, fabricated
from pruning_results import by_group, one, pruning, with_pruning

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import bootstrap_interval
from rarefy.studies import get_study

ContrastPruning = get_study("contrast-pruning")
pytestmark = pytest.mark.usefixtures("eager")
JUDGED = pruning(
    **{"alpha": (0.0, 2 / 81, 9 / 81), "eps_min": (0.2, 0.4, 0.8), "neurons": 81},
    **{"majority": 8, "minority": 1},
)
"""As many neurons as d^2: trained networks decide too."""
SEEDS = 25
PURE = JUDGED.neurons / JUDGED.d


def begins(random: Made, theorem: Made) -> Made:
    return lambda c: xr.where(c["begin"] == "theorem", theorem(c), random(c))


def logits(contains: float, lacks: float) -> Made:
    """The positive logit, and by how much the mask changes it on samples of each kind."""
    return lambda c: (
        0.5 + (c["network"] == "masked") * xr.where(c["contains"] == "contains", contains, lacks)
    )


AS_CLAIMED: dict[str, Made] = {
    "energy": by_group(with_pruning(one, lambda c: c["eps_min"] ** 2), one),
    "pure": begins(by_group(with_pruning(lambda c: PURE, lambda c: PURE - 1), one), lambda c: PURE),
    "norm": by_group(lambda c: c["eps_min"], one),
    "pure_pruned": lambda c: 0.9,
    "pruned_rare": lambda c: 0.9,
    "neurons_rare": lambda c: 0.4,
    "lucky_pruned": lambda c: 2.0,
    "lucky": lambda c: 2.0,
    "positive": logits(-0.2, -0.01),
}
"""Theorem 3.2 to the letter."""


def judged(study: ContrastPruning = JUDGED, **changed: Made) -> list[Verdict]:
    few = partial(bootstrap_interval, resamples=20)  # the seeds are all alike: 20 are as good
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rarefy.measure.statistics.bootstrap_interval", few)
        patch.setattr("rarefy.studies.contrastive.exponents.bootstrap_interval", few)
        return study.verdicts(fabricated(study, SEEDS, AS_CLAIMED | changed), "tiny")


PRIMARY = ("P2.1", "P2.2", "P3.1", "P3.2", "P4.1", "P5.1", "P5.2")


def primaries(verdicts: list[Verdict]) -> dict[str, Verdict]:
    return {verdict.claim: verdict for verdict in verdicts if verdict.role == "primary"}


def test_results_as_claimed_hold_in_every_verdict() -> None:
    verdicts = judged()
    assert {verdict.outcome for verdict in verdicts} == {"holds"}
    assert {verdict.about for verdict in verdicts} == {"P2", "P3", "P4", "P5"}
    assert sorted(primaries(verdicts)) == list(PRIMARY)


def test_what_decides_is_the_last_bias_the_fewest_pruned_and_where_the_theorem_prunes() -> None:
    found = primaries(judged())
    for claim, verdict in found.items():
        state = "trained, pruned from step 8" if claim[:2] in ("P3", "P4") else "theorem's state"
        assert f", {state}, alpha=0.025, paper's bias" in verdict.setting, claim
    others = {v.setting.partition(":")[0] for v in judged() if v.role == "robustness"}
    assert {"more pruned", "pruned from the first step", "no bias", "early"} <= others


WRONG_WORLDS: dict[str, tuple[dict[str, Made], tuple[str, ...]]] = {
    "pruning leaves the energies": (
        {"energy": by_group(lambda c: c["eps_min"] ** 2, one)},
        ("P2.1", "P2.2"),
    ),
    "pruning makes weights depend on eps more": (
        {
            "energy": by_group(
                with_pruning(lambda c: c["eps_min"] ** 3, lambda c: c["eps_min"]), one
            )
        },
        ("P2.1", "P2.2"),
    ),
    "few pure neurons": (
        {"pure": begins(with_pruning(lambda c: 2.2, lambda c: 2.1), lambda c: PURE)},
        ("P3.2",),
    ),
    "fewer pure neurons": (
        {"pure": begins(with_pruning(lambda c: 4.0, lambda c: 5.0), lambda c: PURE)},
        ("P3.1",),
    ),
    "rare neurons are the larger ones": (
        {"norm": by_group(lambda c: 1 / c["eps_min"], one)},
        ("P4.1",),
    ),
    "no sample notices": ({"positive": logits(0.0, 0.0)}, ("P5.1",)),
    "all samples notice": ({"positive": logits(-0.2, -0.2)}, ("P5.2",)),
}


@pytest.mark.parametrize("world", WRONG_WORLDS)
def test_a_world_that_differs_in_one_thing_fails_there_and_nowhere_else(world: str) -> None:
    changed, failing = WRONG_WORLDS[world]
    for claim, verdict in primaries(judged(**changed)).items():
        expected = {"fails"} if claim in failing else {"holds"}
        if world == "no sample notices" and claim == "P5.2":
            expected = {"inconclusive"}  # nothing over nothing
        assert {verdict.outcome} == expected, (claim, verdict.measured)


def test_where_training_alone_removes_the_dependence_pruning_has_none_to_remove() -> None:
    found = primaries(judged(energy=one))
    assert found["P2.1"].outcome == "holds"
    assert found["P2.2"].outcome == "premise-not-met"


def test_more_pruned_than_there_are_pure_rare_neurons_is_not_the_theorems_case() -> None:
    pure = begins(with_pruning(lambda c: 1.9, lambda c: 1.8), lambda c: PURE)
    found = primaries(judged(pure=pure))
    assert found["P3.1"].outcome == found["P3.2"].outcome == "premise-not-met"
    assert "2 pruned, 1.9 rare pure neurons" in found["P3.1"].note


def test_where_chance_decides_who_is_pruned_the_theorem_says_nothing_of_pure_neurons() -> None:
    found = primaries(judged(pure_pruned=lambda c: c["alpha"]))
    assert found["P3.1"].outcome == found["P3.2"].outcome == "premise-not-met"
    assert "is the rare feature's, not most" in found["P3.1"].note


def test_a_narrow_trained_network_decides_nothing() -> None:
    narrow = pruning(alpha=JUDGED.alpha, eps_min=JUDGED.eps_min, neurons=80, majority=8, minority=1)
    assert sorted(primaries(judged(narrow))) == ["P2.1", "P2.2", "P5.1", "P5.2"]


def test_lucky_neurons_of_lost_runs_are_no_lucky_neurons_that_were_spared() -> None:
    found = judged(lucky_pruned=lambda c: xr.where(c["seed"] < 3, np.nan, 2.0))
    (verdict,) = [v for v in found if "lucky set (27)" in v.setting]
    assert verdict.measured.startswith("132 of 132")


@pytest.mark.parametrize(
    ("begin", "start", "state"),
    [("theorem", 0, 0), ("random", 0, 4), ("random", 4, 4), ("random", 11, 12)],
)
def test_the_state_that_is_judged_is_where_pruning_begins_but_never_untrained(
    begin: str, start: int, state: int
) -> None:
    study = pruning(alpha=(0.0, 0.1), begin=(begin,), start=(start,), bias_scale=(0.0,))
    found = judged(
        study,
        positive=lambda c: 0.5 - (c["network"] == "masked") * (1.0 + c["read"]),
        pure_pruned=lambda c: 1.1 + c["read"],
    )
    what = "fall of the positive logit" if begin == "theorem" else "rare pure neurons: share pruned"
    judged_there = next(v for v in found if v.setting.startswith(what))
    assert judged_there.value == pytest.approx(1 + state)


def test_results_without_a_value_hold_nothing() -> None:
    nothing = {name: (lambda c: np.nan) for name in AS_CLAIMED}
    outcomes = {verdict.outcome for verdict in judged(**nothing)}
    assert outcomes <= {"inconclusive", "premise-not-met"}
