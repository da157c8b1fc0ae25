"""G13 and G14: the learners and what is measured of them, against plain loops."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import plain_multi_view as plain
import pytest
import torch
from scipy import stats
from small_granularity import (
    FLOAT64,
    assert_plain,
    assert_same_alone,
    cells_at,
    plain_network,
    rows_at,
)

from rarefy.core.errors import UsageError
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import FreshSamples
from rarefy.studies.granularity.ablation.arms import Arm, Detectors, arms, awake_share
from rarefy.studies.granularity.ablation.study import GranularityAblation
from rarefy.studies.granularity.variations import AS_CHOSEN
from rarefy.train.descent import State

pytestmark = pytest.mark.usefixtures("eager")

STUDY: Any = GranularityAblation.at(
    "paper", arm=arms(("paper", "0.1")), variation=(AS_CHOSEN, "c_b 1.3")
)


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
