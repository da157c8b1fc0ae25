"""G13 and G14: the learners and what is measured of them, against plain loops; the verdicts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import plain_multi_view as plain
import pytest
import torch
import xarray as xr
from made_up_results import coordinates_of
from scipy import stats
from small_granularity import (
    AS_CHOSEN,
    FLOAT64,
    SEEDS,
    assert_plain,
    cells_at,
    plain_network,
)

from rarefy.core.contracts import Verdict
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import FreshSamples
from rarefy.studies import get_study
from rarefy.train.multi_view_classifier import initial_neurons

pytestmark = pytest.mark.usefixtures("eager")
STUDY = get_study("granularity-ablation")


# ---------------------------------------------------------------------------------------- learners


@pytest.mark.parametrize(
    "arm", ["following-0.1", "following-paper", "scheduled-0.1", "linear-1", "linear-4"]
)
def test_a_learner_is_what_a_plain_loop_gives(arm: str) -> None:
    study: Any = STUDY.at("tiny", steps=5, reads=(5,), test_each=4, seeds=1)
    cells = cells_at(study, variation=AS_CHOSEN, world="noisy", arm=arm)
    found = study.simulate(cells, FLOAT64)
    here = study.in_world("noisy")
    assert (here.patches, here.sigma) == (40, 0.3)
    assert here.lr == pytest.approx(study.lr * 40 / 12)
    kind, _, text = arm.partition("-")
    rate = 1 / math.log(study.d) ** 5 if text == "paper" else float(text)
    rules = {
        "following": plain.following(rate),
        "scheduled": lambda moved: rate * here.lr * 3 / (4 * 40) + torch.zeros_like(moved[..., 0]),
        "linear": lambda moved: torch.zeros_like(moved[..., 0]),
    }
    if kind == "linear":
        awake = stats.norm.sf(study.threshold * math.sqrt(math.log(study.d)))
        here = replace(here, lr=here.lr * rate * awake)
    draws, data = cells.draws(FLOAT64), here.model(2)
    for place, per_side in enumerate((1, 2)):
        labels = Labels(data, per_side)
        fresh = FreshSamples(data, labels, draws, study.batch)
        linear = kind == "linear"
        assert_plain(found, (0, place, -1), here, labels, draws, fresh, rules[kind], linear)
    assert np.isnan(found["own_weight"]).all() and np.isnan(found["kept"]).all()


def test_fine_tuning_and_detectors_are_what_a_plain_loop_gives() -> None:
    """Detectors are the neurons that a feature wakes at the start."""
    study: Any = STUDY.at(
        "tiny", steps=6, reads=(6,), tune_steps=4, tune_reads=(0, 4), test_each=4, seeds=1
    )
    cells = cells_at(study, variation=AS_CHOSEN, world="quiet", arm="tuned")
    found = study.simulate(cells, FLOAT64)
    draws, data = cells.draws(FLOAT64), study.model(2)
    rule = plain.following(1 / math.log(study.d) ** 5)
    coarse = Labels(data, 1)
    for place, per_side in enumerate((1, 2)):
        start = initial_neurons(draws, 2 * per_side, study.neurons, study.d, 0.01, study.threshold)
        woken = start["weights"][0] > -start["bias"][0][..., None]
        batches = FreshSamples(data, Labels(data, per_side), draws, study.batch)
        before, level, _ = plain_network(study, draws, batches, 2 * per_side, rule)
        fresh = FreshSamples(data, coarse, draws.spawn("fine-tuning"), study.batch)
        after, bias, _ = plain.descend(
            before, level, fresh, study.lr, study.patches, 4, rule, per_side=per_side
        )
        error = plain.error(after, bias, data, draws, per_side, 4, True)
        assert found["tuned_hard_error"][0, place, -1] == pytest.approx(error, abs=1e-12)
        # a subclass's feature in its own output, mean over subclasses
        answers, means, kept, awake = [], [], 0, 0
        for s in range(4):
            own, v = (s * per_side) // 2, 2 + s
            answers.append(float(torch.relu(after[own, :, v] + bias[own]).sum()))
            there = woken[own, :, v]
            if there.any():
                means.append(float(after[own, there, v].mean()))
            still = there & (before[own, :, v] + level[own] > 0)
            awake += int(still.sum())
            kept += int((after[own, still, v] >= before[own, still, v] - 1e-9).sum())
        assert 0 < awake
        assert found["own_response"][0, place, -1] == pytest.approx(np.mean(answers), rel=1e-9)
        assert found["own_weight"][0, place, -1] == pytest.approx(np.mean(means), rel=1e-9)
        assert found["kept"][0, place] == pytest.approx(kept / awake)


# ------------------------------------------------------------------------------------- the verdicts


ABLATION = get_study("granularity-ablation")
JUDGED: Any = ABLATION.at(
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
    coordinates = coordinates_of(JUDGED, SEEDS)
    length = {name: len(values) for name, values in coordinates.items()}
    generator = np.random.default_rng(0)
    values: dict[str, Any] = {}
    for output in JUDGED.outputs():
        dims = ("seed", *JUDGED.axes, *output.dims)
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
        for verdict in JUDGED.verdicts(results, "paper")
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
    drawn = replace(JUDGED, counts="drawn")
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
    study = replace(JUDGED, arm=few)
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
    verdicts = JUDGED.verdicts(made_up({}, {}), "paper")
    found = [v for v in verdicts if v.about == "G14"]
    assert {v.outcome for v in found} == {"holds"}
    assert [v.claim for v in found] == ["G14.1", "G14.2", "G14.3", "G14", "G14", "G14"]


@pytest.mark.parametrize("words", list(TUNING))
def test_each_part_of_fine_tuning_can_fail(words: str) -> None:
    verdicts = JUDGED.verdicts(made_up({}, {}, **TUNING[words]), "paper")
    hit = [v.outcome for v in verdicts if words in v.setting]
    assert set(hit) == {"fails"}


def test_detectors_that_scatter_decide_nothing() -> None:
    results = made_up({}, {}, weight=(0.4, 0.4), common=(0.4, 0.4), scatter=0.01)
    verdicts = [v for v in JUDGED.verdicts(results, "paper") if "minus before" in v.setting]
    assert len(verdicts) == 4 and {v.outcome for v in verdicts} == {"inconclusive"}


def test_without_the_quiet_world_fine_tuning_is_not_judged() -> None:
    study = replace(JUDGED, world=("noisy",))
    results = made_up({}, {}).sel(world=["noisy"])
    assert not [v for v in study.verdicts(results, "paper") if v.about == "G14"]
    assert [picture.name for picture in study.picture(results)] == ["learners", "schedule"]
    tables = {table.name: table for table in study.tables(results)}
    assert tables["setting"].columns[2:] == ("noisy",)


def test_the_setting_of_both_worlds_is_in_a_table() -> None:
    (table,) = (t for t in JUDGED.tables(made_up({}, {})) if t.name == "setting")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["sigma"] == ("noise of every patch", "0.02", "0.2")
    assert rows["patches"][1:] == ("24", "100") and rows["steps"][1:] == ("200", "200")
