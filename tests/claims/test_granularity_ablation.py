"""G13 and G14: the verdicts on errors made up, and the learners against plain loops."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import plain_multi_view as plain
import pytest
import torch
import xarray as xr
from scipy import stats
from small_granularity import (
    FLOAT64,
    assert_plain,
    assert_same_alone,
    cells_at,
    coordinates_of,
    plain_network,
    rows_at,
)

from rarefy.core.contracts import Verdict
from rarefy.core.errors import UsageError
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import FreshSamples
from rarefy.studies.granularity._ablation_arms import Arm, Detectors, arms, awake_share
from rarefy.studies.granularity._variations import AS_CHOSEN
from rarefy.studies.granularity.granularity_ablation import GranularityAblation
from rarefy.train.descent import State

pytestmark = pytest.mark.usefixtures("eager")

STUDY: Any = GranularityAblation.at(
    "paper", arm=arms(("paper", "0.1")), variation=(AS_CHOSEN, "c_b 1.3")
)


def made_up(
    quiet: dict[str, float],
    noisy: dict[str, float],
    *,
    weight: tuple[float, float] = (0.4, 0.5),
    kept: float = 1.0,
    tuned_hard: float = 0.0,
    control: float = 0.5,
    scatter: float = 0.002,
) -> xr.Dataset:
    """Hard and easy errors of fine labels by arm (0 where none is given), and a fine-tuning during
    which detectors grow from ``weight`` to ``weight``."""
    coordinates = coordinates_of(STUDY)
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
    for name in ("own_weight", "own_response"):
        grown = xr.DataArray(np.linspace(*weight, length["tuned"]), dims="tuned")
        results[name] = results[name] + grown
    results["kept"] = results["kept"] * 0 + kept
    for labels, level in (("coarse", control), ("fine", tuned_hard)):
        results["tuned_hard_error"].loc[{"labels": labels}] += level
    return results


def judged(results: xr.Dataset) -> dict[str, Verdict]:
    """By world and learner; fine-tuning by its first words."""
    found = {}
    for verdict in STUDY.verdicts(results, "paper"):
        words = verdict.setting.partition(": ")[2]
        if verdict.claim == "G13":
            found[f"{words.split()[0]} {words.partition('), ')[2].partition(' with')[0]}"] = verdict
        else:
            found[" ".join(words.split()[:3])] = verdict
    return found


LOST = {"linear-1": 0.3, "linear-4": 0.4, "scheduled-paper": 0.2, "scheduled-0.1": 0.2}


# ------------------------------------------------------------------------------------ verdicts, G13


def test_what_is_lost_holds_where_the_remark_speaks() -> None:
    found = judged(made_up(LOST, LOST))
    for kind in ("easy", "hard"):
        assert found[f"noisy without ReLU, {kind} error"].outcome == "holds"
        # P sigma is far below polylog(d) in the quiet world
        quiet = found[f"quiet without ReLU, {kind} error"]
        assert quiet.outcome == "inconclusive" and "premise not met: P sigma" in quiet.note
    for world in ("quiet", "noisy"):
        for rate in ("1/log^5(d)", "0.1"):
            assert found[f"{world} hard-coded bias at rate {rate}, hard error"].outcome == "holds"


def test_what_is_not_lost_fails() -> None:
    found = judged(made_up({}, {"linear-1": 0.3, "scheduled-paper": 0.3}))
    # one learning rate with a small error is enough
    assert found["noisy without ReLU, hard error"].outcome == "fails"
    assert "linear-4, the worst of 2 cases" in found["noisy without ReLU, hard error"].note
    assert found["noisy hard-coded bias at rate 0.1, hard error"].outcome == "fails"
    assert found["noisy hard-coded bias at rate 1/log^5(d), hard error"].outcome == "holds"


def test_nothing_is_lost_that_the_standard_learner_does_not_have() -> None:
    found = judged(made_up({}, {**LOST, "following-0.1": 0.2}))
    for words in ("without ReLU, hard error", "hard-coded bias at rate 0.1, hard error"):
        verdict = found[f"noisy {words}"]
        assert verdict.outcome == "inconclusive"
        assert "error of following-0.1 not certainly at most 0.05" in verdict.note
    assert found["noisy hard-coded bias at rate 1/log^5(d), hard error"].outcome == "holds"


def test_an_error_at_the_edge_decides_nothing() -> None:
    edge = dict.fromkeys(LOST, 0.05)
    found = judged(made_up({}, edge, scatter=0.02))
    assert found["noisy hard-coded bias at rate 0.1, hard error"].outcome == "inconclusive"


# ------------------------------------------------------------------------------------ verdicts, G14

TUNING: dict[str, dict[str, Any]] = {
    "weight of subclass": {"weight": (0.5, 0.4)},
    "response to subclass": {"weight": (0.5, 0.4)},
    "share of subclass": {"kept": 0.5},
    "hard error of": {"tuned_hard": 0.2, "control": 0.1},
}


def test_detectors_that_grow_hold() -> None:
    verdicts = STUDY.verdicts(made_up({}, {}), "paper")
    assert {v.outcome for v in verdicts if v.claim == "G14"} == {"holds"}


@pytest.mark.parametrize("words", list(TUNING))
def test_each_part_of_fine_tuning_can_fail(words: str) -> None:
    verdicts = STUDY.verdicts(made_up({}, {}, **TUNING[words]), "paper")
    hit = [v.outcome for v in verdicts if v.claim == "G14" and words in v.setting]
    assert set(hit) == {"fails"}


def test_without_the_quiet_world_fine_tuning_is_not_judged() -> None:
    study = replace(STUDY, world=("noisy",))
    results = made_up({}, {}).sel(world=["noisy"])
    found = [v for v in study.verdicts(results, "paper") if v.claim == "G14"]
    assert [v.outcome for v in found] == ["inconclusive"] and "needs world quiet" in found[0].note
    assert len(study.picture(results)) == 1


# ---------------------------------------------------------------------------------------- learners


@pytest.mark.parametrize(
    "arm", ["following-0.1", "following-paper", "scheduled-0.1", "linear-1", "linear-4"]
)
def test_a_learner_is_what_a_plain_loop_gives(arm: str) -> None:
    study: Any = GranularityAblation.at("tiny", steps=5, reads=(5,), test_each=4, seeds=1)
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


def test_fine_tuning_is_what_a_plain_loop_gives() -> None:
    study: Any = GranularityAblation.at(
        "tiny", steps=6, reads=(6,), tune_steps=4, tune_reads=(0, 4), test_each=4, seeds=1
    )
    cells = cells_at(study, variation=AS_CHOSEN, world="quiet", arm="tuned")
    found = study.simulate(cells, FLOAT64)
    draws, data = cells.draws(FLOAT64), study.model(2)
    rule = plain.following(1 / math.log(study.d) ** 5)
    coarse = Labels(data, 1)
    for place, per_side in enumerate((1, 2)):
        batches = FreshSamples(data, Labels(data, per_side), draws, study.batch)
        weights, bias, _ = plain_network(study, draws, batches, 2 * per_side, rule)
        fresh = FreshSamples(data, coarse, draws.spawn("fine-tuning"), study.batch)
        weights, bias, _ = plain.descend(
            weights, bias, fresh, study.lr, study.patches, 4, rule, per_side=per_side
        )
        error = plain.error(weights, bias, data, draws, per_side, 4, True)
        assert found["tuned_hard_error"][0, place, -1] == pytest.approx(error, abs=1e-12)
        # the response of its own output to a subclass's feature, mean over subclasses
        own = [(s * per_side) // 2 for s in range(4)]
        answer = [
            float(torch.relu(weights[own[s], :, 2 + s] + bias[own[s]]).sum()) for s in range(4)
        ]
        assert found["own_response"][0, place, -1] == pytest.approx(np.mean(answer), rel=1e-9)


def test_detectors_are_the_neurons_a_feature_wakes_at_the_start() -> None:
    study: Any = GranularityAblation.at("tiny", seeds=1)
    cells = cells_at(study, variation=AS_CHOSEN, world="quiet", arm="tuned")
    experiment = study.setup(cells, FLOAT64, Labels(study.model(2), 2))
    watch = Detectors.of(experiment)
    weights, bias = (experiment.initial[name][0] for name in ("weights", "bias"))
    generator = torch.Generator().manual_seed(1)
    moved = weights + 0.01 * torch.randn(weights.shape, generator=generator, dtype=torch.float64)
    means, weaker, awake = [], 0, 0
    for s in range(4):
        there = weights[s, :, 2 + s] > -bias[s]
        if there.any():
            means.append(float(moved[s, there, 2 + s].mean()))
        awake += int(there.sum())
        weaker += int((moved[s, there, 2 + s] < weights[s, there, 2 + s]).sum())
    state = State(0, {"weights": moved[None], "bias": bias[None]}, torch.zeros(1))
    assert float(watch.look(state)[0, 0]) == pytest.approx(np.mean(means))
    after = {"weights": moved[None], "bias": bias[None]}
    assert float(watch.kept(experiment.initial, after)) == pytest.approx(1 - weaker / awake)
    assert float(watch.kept(experiment.initial, experiment.initial)) == 1


def test_a_run_is_the_same_alone_and_in_a_batch() -> None:
    study: Any = GranularityAblation.at(
        "tiny", steps=4, reads=(4,), tune_steps=2, tune_reads=(0, 2), seeds=3
    )
    assert_same_alone(study, rows_at(study, variation=AS_CHOSEN, world="quiet"))


def test_arms_are_named_and_read() -> None:
    words = arms(("paper", "0.1"), ("1",))
    assert words == (
        "following-paper",
        "following-0.1",
        "scheduled-paper",
        "scheduled-0.1",
        "linear-1",
        "tuned",
    )
    assert Arm.parse("following-paper", 100) == Arm("following", 1 / math.log(100) ** 5)
    assert Arm.parse("scheduled-0.3", 100) == Arm("scheduled", 0.3)
    assert awake_share(STUDY) == pytest.approx(stats.norm.sf(math.sqrt(math.log(128))))


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subclasses": 0}, "subclasses=0: must be at least 1 a side"),
        ({"subclasses": 8, "batch": 64}, "d=16: must be at least 2 \\+ k_\\+ \\+ k_- = 18"),
        ({"feature_patches": 7}, "feature_patches=7: its samples need 14 patches, there are 12"),
        ({"batch": 10}, "batch=10: must be a multiple of 2 k = 4"),
        ({"variation": ("no such",)}, "unknown variation 'no such'"),
        ({"world": ("loud",)}, "unknown world 'loud'"),
        ({"arm": ("following",)}, "arm='following': must be following-RATE, scheduled-RATE"),
        ({"arm": ("tuned-1",)}, "arm='tuned-1': must be"),
        ({"arm": ("following-fast",)}, "arm='following-fast': its rate must be paper or a number"),
        ({"arm": ("linear-paper",)}, "arm='linear-paper': its rate must be"),
        ({"arm": ("tuned", "following-0.1")}, "must have linear-1"),
        ({"main_rate": "0.7"}, "must have following-0.7"),
        ({"tune_reads": (5, 10)}, "tune_reads=\\(5, 10\\): must begin at 0 and end at"),
        ({"tune_steps": 0}, "tune_steps=0: must be at least 1"),
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GranularityAblation.at("tiny", **wrong)
