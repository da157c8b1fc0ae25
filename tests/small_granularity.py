"""What tests of the multi-view studies share: coordinates of made-up results, single cells, and
both compared with the plain loop of ``plain_multi_view``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import plain_multi_view as plain
import pytest
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Study
from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import Batch, FreshSamples
from rarefy.sweep.grid import grid_of

SEEDS = 8
AS_CHOSEN = "as chosen"
FLOAT64 = Context(dtype=torch.float64)


def rows_at(study: Study, **at: Any) -> np.ndarray:
    """Places of the cells with these values of axes, or of ``seed``."""
    grid = grid_of(study)
    there = [np.asarray(grid.values[name] == value) for name, value in at.items()]
    return np.flatnonzero(np.logical_and.reduce(there))


def cells_at(study: Study, **at: Any) -> Cells:
    return grid_of(study).cells(rows_at(study, **at))


def plain_network(
    study: Any,
    draws: Draws,
    batches: Callable[[int], Batch],
    outputs: int,
    rule: plain.Rule | None = None,
    linear: bool = False,
) -> tuple[Tensor, Tensor, float]:
    """Weights, biases and last loss; ``rule`` is (18) unless given."""
    return plain.train(
        draws,
        batches,
        outputs,
        d=study.d,
        neurons=study.neurons,
        sigma_0=study.sigma_0,
        threshold=study.threshold,
        lr=study.lr,
        patches=study.patches,
        steps=study.steps,
        rule=rule or plain.following(1 / math.log(study.d) ** 5),
        linear=linear,
    )


def assert_plain(
    found: dict[str, np.ndarray],
    at: tuple[int, ...],
    study: Any,
    labels: Labels,
    draws: Draws,
    batches: Callable[[int], Batch],
    rule: plain.Rule | None = None,
    linear: bool = False,
) -> tuple[Tensor, Tensor]:
    """Loss and errors of one network, at ``at`` of each output, are those of the plain loop, whose
    weights and biases are given back."""
    weights, bias, loss = plain_network(study, draws, batches, labels.outputs, rule, linear)
    assert found["loss"][at] == pytest.approx(loss, rel=1e-9)
    for name, hard in (("easy_error", False), ("hard_error", True)):
        error = plain.error(
            weights, bias, labels.data, draws, labels.per_side, study.test_each, hard, linear
        )
        assert found[name][at] == pytest.approx(error, abs=1e-12)
    return weights, bias


def assert_tuned_plain(
    found: dict[str, np.ndarray],
    at: tuple[int, ...],
    study: Any,
    labels: Labels,
    draws: Draws,
    before: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor]:
    """Errors after fine-tuning are those of a plain loop that trains on from ``before`` with the
    clean coarse question, as many fresh samples per update as the study's batch has."""
    fresh = FreshSamples(
        labels.data, Labels(labels.data, 1), draws.spawn("fine-tuning"), study.batch
    )
    rule = plain.following(1 / math.log(study.d) ** 5)
    weights, bias, _ = plain.descend(
        *before, fresh, study.lr, study.patches, study.tune_steps, rule, per_side=labels.per_side
    )
    for name, hard in (("tuned_easy_error", False), ("tuned_hard_error", True)):
        error = plain.error(
            weights, bias, labels.data, draws, labels.per_side, study.test_each, hard
        )
        assert found[name][at] == pytest.approx(error, abs=1e-12)
    return weights, bias
