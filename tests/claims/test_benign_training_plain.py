"""``benign-training``: trainings followed by a plain loop, and the sizes and rates of its cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from rarefy.core.contracts import Cells, Context
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.measure.generalisation import sample_losses, scores_of
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

BenignTraining: Any = get_study("benign-training")

F64 = torch.float64
FLOAT64 = Context(dtype=F64)


def tiny_cells(study: Any, case: str) -> Cells:
    grid = grid_of(study)
    return grid.cells(np.flatnonzero(grid.values["case"] == case)[:2])


def followed(study: Any, case: str, lr: torch.Tensor, stop: float) -> dict[str, Any]:
    """By autograd: losses in every step, (step, run, n), updates, T_0 and |W(T_0) - W*|."""
    cells, there = tiny_cells(study, case), study.at_case(case)
    gamma = cells.column("gamma", FLOAT64)
    trial = there.setup(
        cells,
        FLOAT64,
        spectrum=spectrum_for(gamma, there.d, there.classes, there.base),
        strength=cells.column("strength", FLOAT64),
        sizes=torch.tensor([study.sizes_of(case)]),
    )
    samples, weights = trial.samples, trial.initial.clone()
    moving, updates = torch.ones(2, dtype=torch.bool), torch.zeros(2, dtype=torch.int64)
    start, distance, losses = [-1, -1], [math.nan, math.nan], []
    length = 2.5 * math.log(4 * (there.classes - 1) / study.stop_loss)
    steps = study.steps_of(case)
    for step in range(steps + 1):
        weights = weights.detach().requires_grad_(True)
        loss, _ = sample_losses(scores_of(weights, samples, there.scale), samples.labels)
        losses.append(loss.detach())
        mean = loss.mean(dim=1)
        for run in range(2):
            if start[run] < 0 and mean[run] <= math.log(there.classes) / 4:
                start[run] = step
                best = samples.features[0][:, None] * length / samples.strength[run, 0]
                distance[run] = float((weights[run].detach() - best).norm())
        if step < steps:
            (gradient,) = torch.autograd.grad(mean.sum(), weights)
            rate = torch.where(moving, lr, 0.0)[:, None, None, None]
            weights = weights.detach() - rate * gradient
            updates += moving
            moving = moving & (mean.detach() > stop)
    return {
        "losses": torch.stack(losses),
        "updates": updates.numpy(),
        "start": start,
        "distance": distance,
    }


@pytest.mark.parametrize("case", ["slow", "trained", "long"])
def test_a_watched_training_is_a_plain_one_by_autograd(case: str) -> None:
    study = BenignTraining.at("tiny", stop_loss=0.1, long_steps=50)
    found = study.simulate(tiny_cells(study, case), FLOAT64)
    stop = 0.1 if case == "trained" else 0.0
    expected = followed(study, case, torch.as_tensor(found["lr"]), stop)
    for run in range(2) if case != "trained" else ():
        kept = found["step_at"][run][np.isfinite(found["step_at"][run])].astype(int)
        assert kept[0] == 0 and kept[-1] == study.steps_of(case) and (np.diff(kept) > 0).all()
        loss = expected["losses"][kept, run]
        if case == "slow":
            spread = torch.stack([loss.amin(1), loss.median(1).values, loss.amax(1)], dim=1)
            np.testing.assert_allclose(found["loss_at"][run, : len(kept)], spread, rtol=1e-7)
            continue
        first = expected["start"][run]
        mean = expected["losses"][first:, run].mean(dim=1)
        average = (mean.cumsum(0) / torch.arange(1, len(mean) + 1))[kept[kept >= first] - first]
        there = found["average_at"][run, : len(kept)][kept >= first]
        np.testing.assert_allclose(there, average, rtol=1e-7)
    if case == "trained":
        assert found["updates"].tolist() == expected["updates"].tolist()
        assert expected["updates"].min() < study.trained_steps  # a run has stopped
        np.testing.assert_allclose(found["train_loss"], expected["losses"][-1].mean(1), rtol=1e-8)
    if case == "long":
        assert found["start"].tolist() == expected["start"] and min(expected["start"]) >= 0
        steps = study.long_steps - np.array(expected["start"]) + 1
        bound = np.array(expected["distance"]) ** 2 / (found["lr"] * steps) + 0.1 / 2
        last = [int(np.isfinite(row).sum()) - 1 for row in found["step_at"]]
        np.testing.assert_allclose(found["bound_at"][[0, 1], last], bound, rtol=1e-8)


def test_unequal_classes_double_and_keep_the_total() -> None:
    study = BenignTraining()
    sizes = study.sizes_of("slow uneven")
    assert sum(sizes) == 500 and sizes[0] >= 1
    assert all(
        later / sooner == pytest.approx(2, rel=0.05)
        for sooner, later in zip(sizes, sizes[1:], strict=False)
    )
    assert study.sizes_of("slow") == [100] * 5
    assert min(BenignTraining(size=1).sizes_of("slow uneven")) >= 1


def test_the_slow_rate_takes_a_fortieth_of_the_loss() -> None:
    study = BenignTraining.at("tiny", strength=(3.0,), filters=60, d=400, size=4)
    cells = tiny_cells(study, "slow")
    found = study.simulate(cells, FLOAT64)
    loss = found["loss_at"][:, :2, 1]  # medians before and after the first step
    fall = 1 - loss[:, 1] / loss[:, 0]
    np.testing.assert_allclose(fall, 1 / 40, rtol=0.35)
    np.testing.assert_allclose(found["first_drop"], 1, rtol=0.25)


def test_the_large_start_is_what_118_asks() -> None:
    there = BenignTraining.at("tiny").at_case("wide large start")
    n = there.classes * there.size
    assert there.initialisation == "gaussian"
    asked = math.log(n / 0.1) * math.log(there.trained_steps) ** 2 / (n * there.sigma_0**2)
    assert asked == pytest.approx(there.filters)
