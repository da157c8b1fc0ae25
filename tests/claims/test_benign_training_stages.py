"""Both stages read off made-up losses, and one training followed by a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.measure.generalisation import sample_losses, scores_of
from rarefy.studies.benign._experiment import Experiment
from rarefy.studies.benign._training_cases import CASES, class_sizes
from rarefy.studies.benign._training_measures import TIMES, kept_times
from rarefy.studies.benign._training_run import watched
from rarefy.studies.benign._training_stages import losses, stage_1, stage_2
from rarefy.studies.benign.benign_training import BenignTraining, large_std
from rarefy.sweep.grid import grid_of

F64 = torch.float64
FLOAT64 = Context(dtype=F64)


def odds_of(loss: Tensor) -> Tensor:
    return torch.log(torch.expm1(loss))


# ----------------------------------------------------------------------------------------- stage 1


def test_a_geometric_fall_has_its_rate_no_bend_and_no_rise() -> None:
    step = torch.arange(60, dtype=F64)
    rates = torch.tensor([0.05, 0.1, 0.001], dtype=F64)
    loss = 1.6 * torch.exp(-rates[None, None, :] * step[None, :, None])
    one_hot = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]], dtype=F64)
    found = stage_1(odds_of(loss), one_hot, torch.full((1, 3), 1e-9, dtype=F64))
    torch.testing.assert_close(found.rate[0], rates)
    assert found.left.tolist() == [[True, True, False]]  # the third is still in stage 1
    torch.testing.assert_close(found.bend[0, :2], torch.ones(2, dtype=F64))
    assert math.isnan(found.bend[0, 2].item())
    assert not found.rises.any() and found.enough.item() == 1
    torch.testing.assert_close(losses(odds_of(loss)), loss)


def test_the_promise_of_68_is_judged_step_by_step() -> None:
    """Odds that fall by known amounts: two samples of one class and one of another."""
    odds = torch.tensor([[[0.0, 1.0, 0.0], [-0.1, 0.9, -0.5], [-0.2, 0.88, -1.0]]], dtype=F64)
    one_hot = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]], dtype=F64)
    promised = torch.tensor([[0.1, 0.1, 0.2]], dtype=F64)
    found = stage_1(odds, one_hot, promised)
    residual = torch.sigmoid(odds[0])
    together = residual[:, 0] + residual[:, 1]
    first = 0.1 / (0.4 * 0.1 * together[:2])  # falls by 0.1 and 0.1
    assert found.gain[0, 0].item() == pytest.approx(first.min().item())
    second = torch.tensor([0.1, 0.02]) / (0.4 * 0.1 * together[:2])
    assert found.gain[0, 1].item() == pytest.approx(second.min().item())
    alone = 0.5 / (0.4 * 0.2 * residual[:2, 2])
    assert found.gain[0, 2].item() == pytest.approx(alone.min().item())
    assert found.enough.item() == pytest.approx(5 / 6)


def test_a_rise_is_seen_in_stage_1_only() -> None:
    loss = torch.tensor([[[1.0, 1.0], [1.1, 0.2], [0.5, 0.3]]], dtype=F64)  # second: after stage 1
    one_hot = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]], dtype=F64)
    found = stage_1(odds_of(loss), one_hot, torch.ones(1, 2, dtype=F64))
    assert found.rises.tolist() == [[True, False]]


def test_unequal_classes_double_and_keep_the_total() -> None:
    sizes = class_sizes(CASES["slow uneven"], 5, 100)
    assert sum(sizes) == 500 and sizes[0] >= 1
    assert all(
        later / sooner == pytest.approx(2, rel=0.05)
        for sooner, later in zip(sizes, sizes[1:], strict=False)
    )
    assert class_sizes(CASES["slow"], 5, 100) == [100] * 5
    assert min(class_sizes(CASES["slow uneven"], 5, 1)) >= 1


# ----------------------------------------------------------------------------------------- stage 2


def test_average_bound_and_slopes_of_a_loss_like_1_over_t() -> None:
    steps = 4000
    t = torch.arange(steps + 1, dtype=F64)
    start = torch.tensor([10, -1], dtype=torch.int64)
    since = (t - 10 + 1).clamp(min=1)
    loss = torch.stack([0.4 / since, torch.full_like(t, 1.6)])
    kappa = torch.stack([2 * since**0.25, torch.ones_like(t)])
    lr, distance = torch.tensor([2.0, 2.0], dtype=F64), torch.tensor([3.0, torch.nan], dtype=F64)
    found = stage_2(loss, kappa, start, distance, lr, epsilon=0.01)
    average = [float(loss[0, 10 : stop + 1].mean()) for stop in range(10, steps + 1)]
    bound = 3.0**2 / (2.0 * np.arange(1, steps - 10 + 2)) + 0.01 / 2
    np.testing.assert_allclose(found.average[0, 10:], average, rtol=1e-10)
    np.testing.assert_allclose(found.bound[0, 10:], bound, rtol=1e-10)
    assert found.worst[0].item() == pytest.approx(
        max(a / b for a, b in zip(average, bound, strict=True))
    )
    assert found.loss_slope[0].item() == pytest.approx(-1, abs=1e-3)
    assert found.kappa_slope[0].item() == pytest.approx(0.25, abs=1e-3)
    # H_t/t has the slope -1 + 1/(log t + gamma): still far from -1
    assert found.average_slope[0].item() == pytest.approx(
        -1 + 1 / (math.log(2000) + 0.577), abs=0.01
    )
    assert found.average[0, :10].isnan().all() and found.average[1].isnan().all()
    for never in (found.worst, found.average_slope, found.loss_slope, found.kappa_slope):
        assert math.isnan(never[1].item())


def test_a_short_stage_2_has_no_slope() -> None:
    loss = torch.linspace(1, 0.3, 50, dtype=F64)[None]
    found = stage_2(
        loss, loss, torch.tensor([30]), torch.ones(1, dtype=F64), torch.ones(1, dtype=F64), 0.01
    )
    assert found.loss_slope.isnan().all() and found.worst.isfinite().all()


# ------------------------------------------------------------------------------- against plain code


def tiny_cells(study: BenignTraining, case: str) -> Cells:
    grid = grid_of(study)
    return grid.cells(np.flatnonzero(grid.values["case"] == case)[:2])


def experiment_of(study: BenignTraining, case: str) -> tuple[Experiment, BenignTraining]:
    cells = tiny_cells(study, case)
    there = study.at_case(CASES[case])
    noise = spectrum_for(cells.column("gamma", FLOAT64), there.d, there.classes, there.base)
    sizes = torch.tensor([class_sizes(CASES[case], there.classes, there.size)])
    strength = cells.column("strength", FLOAT64)
    return there.setup(cells, FLOAT64, spectrum=noise, strength=strength, sizes=sizes), there


def test_a_watched_training_is_a_plain_one_by_autograd() -> None:
    study = BenignTraining.at("tiny")
    assert isinstance(study, BenignTraining)
    experiment, there = experiment_of(study, "trained")
    lr = torch.tensor([5.0, 2.0], dtype=F64)
    seen = watched(experiment, FLOAT64, lr, 40, stop_loss=0.1, epsilon=0.05, coefficients=True)
    weights = experiment.initial.clone()
    labels = experiment.samples.labels
    moving = torch.ones(2, dtype=torch.bool)
    updates, start = torch.zeros(2, dtype=torch.int64), [-1, -1]
    memory = torch.zeros(2, len(experiment.samples), dtype=F64)
    distance = [math.nan, math.nan]
    length = 2.5 * math.log(4 * (there.classes - 1) / 0.05)
    for step in range(41):
        weights = weights.detach().requires_grad_(True)
        scores = scores_of(weights, experiment.samples, there.scale)
        loss, _ = sample_losses(scores, labels)
        mean = loss.mean(dim=1)
        torch.testing.assert_close(losses(seen.odds[:, step]), loss.detach(), rtol=1e-9, atol=1e-9)
        for run in range(2):
            if start[run] < 0 and mean[run] <= math.log(there.classes) / 4:
                start[run] = step
                u = experiment.samples.strength[run, 0]
                best = experiment.samples.features[0][:, None] * length / u
                distance[run] = float((weights[run].detach() - best).norm())
        if step == 40:
            break
        (gradient,) = torch.autograd.grad(mean.sum(), weights)
        memory += torch.where(moving, lr, 0.0)[:, None] * (1 - torch.exp(-loss.detach()))
        weights = weights.detach() - (torch.where(moving, lr, 0.0)[:, None, None, None] * gradient)
        updates += moving
        moving = moving & (mean.detach() > 0.1)
    torch.testing.assert_close(seen.filters, weights.detach(), rtol=1e-8, atol=1e-10)
    assert seen.updates.tolist() == updates.tolist() and seen.start.tolist() == start
    assert min(updates.tolist()) < 40 and min(start) >= 0  # both rules were at work
    np.testing.assert_allclose(seen.distance.numpy(), distance, rtol=1e-8)
    expected = [memory[:, labels[0] == k].square().sum(dim=1).sqrt() for k in range(there.classes)]
    torch.testing.assert_close(seen.stored, torch.stack(expected, dim=1))


def test_the_slow_rate_takes_a_fortieth_of_the_loss() -> None:
    study = BenignTraining.at("tiny", strength=(3.0,), filters=60, d=400, size=4)
    assert isinstance(study, BenignTraining)
    cells = tiny_cells(study, "slow")
    found = study.simulate(cells, FLOAT64)
    loss = found["loss_at"][:, :2, 1]  # medians before and after the first step
    fall = 1 - loss[:, 1] / loss[:, 0]
    np.testing.assert_allclose(fall, 1 / 40, rtol=0.35)
    np.testing.assert_allclose(found["first_drop"], 1, rtol=0.25)


def test_kept_times_begin_at_0_and_end_at_the_end() -> None:
    for steps in (1, 20, 3000):
        times = kept_times(steps)
        assert times[0] == 0 and times[-1] == steps and len(times) <= TIMES
        assert (np.diff(times) > 0).all()


def test_the_large_start_is_what_118_asks() -> None:
    study = BenignTraining.at("tiny")
    assert isinstance(study, BenignTraining)
    there = study.at_case(CASES["wide large start"])
    n = there.classes * there.size
    sigma = large_std(there)
    assert there.sigma_0 == sigma and there.initialisation == "gaussian"
    asked = math.log(n / 0.1) * math.log(there.trained_steps) ** 2 / (n * sigma**2)
    assert asked == pytest.approx(there.filters)
