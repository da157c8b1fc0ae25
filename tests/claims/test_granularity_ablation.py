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
    AS_CHOSEN,
    FLOAT64,
    assert_plain,
    assert_same_alone,
    cells_at,
    plain_network,
    rows_at,
)

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


@pytest.mark.slow
def test_a_run_is_the_same_alone_and_in_a_batch() -> None:
    study: Any = STUDY.at("tiny", steps=4, reads=(4,), tune_steps=2, tune_reads=(0, 2), seeds=3)
    assert_same_alone(study, rows_at(study, variation=AS_CHOSEN, world="quiet"))
