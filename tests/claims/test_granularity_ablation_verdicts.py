"""G13 and G14: the verdicts, the pictures and the tables of results made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import coordinates_of
from small_granularity import AS_CHOSEN, SEEDS

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study

ABLATION = get_study("granularity-ablation")
STUDY: Any = ABLATION.at(
    "paper", arm=ABLATION.scales["tiny"]["arm"], variation=(AS_CHOSEN, "c_b 1.3")
)


def made_up(
    quiet: dict[str, float],
    noisy: dict[str, float],
    *,
    coarse: dict[str, float] | None = None,
    common: tuple[float, float] = (0.2, 0.3),
    weight: tuple[float, float] = (0.4, 0.5),
    kept: float = 1.0,
    tuned_hard: float = 0.0,
    control: float = 0.5,
    scatter: float = 0.002,
) -> xr.Dataset:
    """Hard and easy errors of fine labels by arm (0 where none is given), hard errors of coarse
    labels in both worlds, and a fine-tuning during which detectors of subclasses grow from and to
    ``weight``, those of common features from and to ``common``."""
    coordinates = coordinates_of(STUDY, SEEDS)
    length = {name: len(values) for name, values in coordinates.items()}
    generator = np.random.default_rng(0)
    values: dict[str, Any] = {}
    for output in STUDY.outputs():
        dims = ("seed", *STUDY.axes, *output.dims)
        scattered = scatter * generator.normal(size=[length[dim] for dim in dims])
        values[output.name] = (dims, scattered)
    results = xr.Dataset(values, coordinates)
    for world, errors in (("quiet", quiet), ("noisy", noisy)):
        for arm, error in errors.items():
            at = {"world": world, "arm": arm, "labels": "fine"}
            for name in ("easy_error", "hard_error"):
                results[name].loc[at] += error
    for arm, error in (coarse or {}).items():
        results["hard_error"].loc[{"arm": arm, "labels": "coarse"}] += error
    for name in ("own_weight", "own_response", "common_weight", "common_response"):
        ends = weight if name.startswith("own") else common
        grown = xr.DataArray(np.linspace(*ends, length["tuned"]), dims="tuned")
        results[name] = results[name] + grown
    results["kept"] = results["kept"] * 0 + kept
    for labels, level in (("coarse", control), ("fine", tuned_hard)):
        results["tuned_hard_error"].loc[{"labels": labels}] += level
    return results


def judged(results: xr.Dataset, world: str, words: str) -> Verdict:
    """The one verdict of G13 about a world with these words."""
    there = [
        verdict
        for verdict in STUDY.verdicts(results, "paper")
        if verdict.about == "G13" and verdict.setting.startswith(f"{world} (")
        if words in verdict.setting
    ]
    assert len(there) == 1
    return there[0]


LOST = {"linear-1": 0.3, "linear-4": 0.4}


# ------------------------------------------------------------------------------------ verdicts, G13


def test_what_is_lost_holds_where_the_remark_speaks() -> None:
    results = made_up(LOST, LOST)
    for kind, claim in (("easy", "G13.1"), ("hard", "G13")):
        noisy = judged(results, "noisy", f"without ReLU, {kind} error")
        assert (noisy.outcome, noisy.claim) == ("holds", claim)
        # P sigma is far below polylog(d) in the quiet world
        quiet = judged(results, "quiet", f"without ReLU, {kind} error")
        assert (quiet.outcome, quiet.claim) == ("premise-not-met", "G13")
        assert "premise not met: P sigma" in quiet.note


def test_one_rate_that_loses_nothing_is_enough_to_fail() -> None:
    linear = judged(made_up({}, {"linear-1": 0.3}), "noisy", "without ReLU, easy error")
    assert linear.outcome == "fails" and "linear-4, the worst of 2 cases" in linear.note
    assert "the paper's learner: " in linear.note


def test_nothing_is_lost_that_the_papers_learner_does_not_have() -> None:
    results = made_up({}, {**LOST, "following-paper": 0.2})
    verdict = judged(results, "noisy", "without ReLU, easy error")
    assert verdict.outcome == "premise-not-met"
    assert "the paper's learner not certainly at most 0.05" in verdict.note
    # but what errs little has lost nothing even so
    results = made_up({}, {"following-paper": 0.2})
    assert judged(results, "noisy", "without ReLU, easy error").outcome == "fails"


def test_an_error_at_the_edge_decides_nothing() -> None:
    results = made_up({}, dict.fromkeys(LOST, 0.05), scatter=0.02)
    assert judged(results, "noisy", "without ReLU, easy error").outcome == "inconclusive"


def test_the_best_readout_without_relu_is_named() -> None:
    """Phi(-3 sqrt(1 + 1/8)/(0.2 sqrt(200))), a little more with strengths that vary."""
    note = judged(made_up({}, {}), "noisy", "without ReLU, easy error").note
    assert "best readout by one sum a side, closed form: 0.131" in note
    drawn = replace(STUDY, counts="drawn")
    assert all("one sum" not in v.note for v in drawn.verdicts(made_up({}, {}), "paper"))
    assert drawn.picture(made_up({}, {})) and drawn.tables(made_up({}, {}))


COARSE = "coarse labels, hard error with hard-coded minus following bias"
FOLLOWING = {"following-paper": 0.5, "following-0.1": 0.5}


@pytest.mark.parametrize(
    ("scheduled", "expected"),
    [
        ((0.6, 0.7), ("holds", "holds")),
        ((0.4, 0.7), ("fails", "holds")),
        ((0.5, 0.4), ("inconclusive", "fails")),
    ],
)
def test_with_coarse_labels_a_schedule_must_err_more(
    scheduled: tuple[float, float], expected: tuple[str, str]
) -> None:
    errors = dict(zip(("scheduled-paper", "scheduled-0.1"), scheduled, strict=True))
    results = made_up({}, {}, coarse={**FOLLOWING, **errors}, scatter=0.02)
    found = [judged(results, "noisy", f"rate {rate}, {COARSE}") for rate in ("1/log^5(d)", "0.1")]
    assert tuple(verdict.outcome for verdict in found) == expected
    assert [verdict.claim for verdict in found] == ["G13.2", "G13"]
    assert "easy errors" in found[0].note
    assert judged(results, "quiet", COARSE).outcome == expected[0]  # the paper's rate alone


def test_without_schedules_there_is_nothing_to_judge() -> None:
    few = ("following-paper", "following-0.1", "linear-1", "tuned")
    study = replace(STUDY, arm=few)
    results = made_up({}, {}).sel(arm=list(few))
    verdicts = study.verdicts(results, "paper")
    assert not [v for v in verdicts if "hard-coded" in v.setting]
    assert study.picture(results) and study.tables(results)


# ------------------------------------------------------------------------------------ verdicts, G14

TUNING: dict[str, dict[str, Any]] = {
    "weight of subclass": {"weight": (0.5, 0.4)},
    "response to subclass": {"weight": (0.5, 0.4)},
    "weight of common": {"common": (0.5, 0.4)},
    "response to common": {"common": (0.5, 0.4)},
    "share of subclass": {"kept": 0.5},
    "hard error of": {"tuned_hard": 0.2, "control": 0.1},
}


def test_detectors_that_grow_hold() -> None:
    verdicts = STUDY.verdicts(made_up({}, {}), "paper")
    found = [v for v in verdicts if v.about == "G14"]
    assert {v.outcome for v in found} == {"holds"}
    assert [v.claim for v in found] == ["G14.1", "G14.2", "G14.3", "G14", "G14", "G14"]


@pytest.mark.parametrize("words", list(TUNING))
def test_each_part_of_fine_tuning_can_fail(words: str) -> None:
    verdicts = STUDY.verdicts(made_up({}, {}, **TUNING[words]), "paper")
    hit = [v.outcome for v in verdicts if words in v.setting]
    assert set(hit) == {"fails"}


def test_detectors_that_scatter_decide_nothing() -> None:
    results = made_up({}, {}, weight=(0.4, 0.4), common=(0.4, 0.4), scatter=0.01)
    verdicts = [v for v in STUDY.verdicts(results, "paper") if "minus before" in v.setting]
    assert len(verdicts) == 4 and {v.outcome for v in verdicts} == {"inconclusive"}


def test_without_the_quiet_world_fine_tuning_is_not_judged() -> None:
    study = replace(STUDY, world=("noisy",))
    results = made_up({}, {}).sel(world=["noisy"])
    assert not [v for v in study.verdicts(results, "paper") if v.about == "G14"]
    assert [picture.name for picture in study.picture(results)] == ["learners", "schedule"]
    tables = {table.name: table for table in study.tables(results)}
    assert tables["setting"].columns[2:] == ("noisy",)


def test_the_setting_of_both_worlds_is_in_a_table() -> None:
    (table,) = (t for t in STUDY.tables(made_up({}, {})) if t.name == "setting")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["sigma"] == ("noise of every patch", "0.02", "0.2")
    assert rows["patches"][1:] == ("24", "100") and rows["steps"][1:] == ("200", "200")
