"""Stages of training, read off made-up losses and runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.measure.stages import at_step, first_step, t1_of_000, t2_of_000
from rarefy.measure.training_stages import losses, stage_1, stage_2

F64 = torch.float64


def odds_of(loss: Tensor) -> Tensor:
    return torch.log(torch.expm1(loss))


# ----------------------------------------------------------------------------------------- stage 1


def test_a_geometric_fall_has_its_rate_and_no_bend() -> None:
    step = torch.arange(60, dtype=F64)
    rates = torch.tensor([0.05, 0.1, 0.001], dtype=F64)
    loss = 1.6 * torch.exp(-rates[None, None, :] * step[None, :, None])
    found = stage_1(odds_of(loss))
    torch.testing.assert_close(found.rate[0], rates)
    torch.testing.assert_close(found.bend[0, :2], torch.ones(2, dtype=F64))
    assert math.isnan(found.bend[0, 2].item())  # still in stage 1
    torch.testing.assert_close(losses(odds_of(loss)), loss)


def test_a_fall_like_1_over_t_bends_by_a_half() -> None:
    loss = 1 / (1 + 0.01 * torch.arange(500, dtype=F64))
    assert stage_1(odds_of(loss[None, :, None])).bend.item() == pytest.approx(0.5, rel=0.01)


# ----------------------------------------------------------------------------------------- stage 2


def test_average_bound_and_slopes_of_a_loss_like_1_over_t() -> None:
    steps = 4000
    t = torch.arange(steps + 1, dtype=F64)
    start = torch.tensor([10, -1], dtype=torch.int64)
    since = (t - 10 + 1).clamp(min=1)
    loss = torch.stack([0.4 / since, torch.full_like(t, 1.6)])
    lr, distance = torch.tensor([2.0, 2.0], dtype=F64), torch.tensor([3.0, torch.nan], dtype=F64)
    found = stage_2(loss, start, distance, lr, epsilon=0.01)
    average = [float(loss[0, 10 : stop + 1].mean()) for stop in range(10, steps + 1)]
    bound = 3.0**2 / (2.0 * np.arange(1, steps - 10 + 2)) + 0.01 / 2
    np.testing.assert_allclose(found.average[0, 10:], average, rtol=1e-10)
    np.testing.assert_allclose(found.bound[0, 10:], bound, rtol=1e-10)
    assert found.worst[0].item() == pytest.approx(
        max(a / b for a, b in zip(average, bound, strict=True))
    )
    assert found.loss_slope[0].item() == pytest.approx(-1, abs=1e-3)
    # H_t/t has the slope -1 + 1/(log t + gamma): still far from -1
    assert found.average_slope[0].item() == pytest.approx(
        -1 + 1 / (math.log(2000) + 0.577), abs=0.01
    )
    assert found.average[0, :10].isnan().all() and found.average[1].isnan().all()
    for never in (found.worst, found.average_slope, found.loss_slope):
        assert math.isnan(never[1].item())


def test_a_short_stage_2_has_no_slope() -> None:
    loss = torch.linspace(1, 0.3, 50, dtype=F64)[None]
    found = stage_2(
        loss, torch.tensor([30]), torch.ones(1, dtype=F64), torch.ones(1, dtype=F64), 0.01
    )
    assert found.loss_slope.isnan().all() and found.worst.isfinite().all()


# -------------------------------------------------------------------------------- stages of pruning


@settings(deadline=None, max_examples=25)
@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=5))
def test_first_step_is_the_first_true_entry_or_minus_one(rows: list[list[bool]]) -> None:
    expected = [row.index(True) if True in row else -1 for row in rows]
    assert first_step(torch.tensor(rows)).tolist() == expected


def recorded(*runs: list[list[float]]) -> torch.Tensor:
    """(run, step, neuron)"""
    return torch.tensor(runs)


def test_t1_of_000_waits_for_the_last_neuron() -> None:
    total = torch.ones(2, 4, 2)
    inside = recorded(
        [[0.1, 0.1], [0.6, 0.4], [0.4, 0.6], [0.5, 0.9]],  # together only at step 3
        [[0.1, 0.9], [0.2, 0.9], [0.3, 0.9], [0.4, 0.9]],  # never
    )
    assert t1_of_000(inside, total).tolist() == [3, -1]


def test_t1_of_000_can_be_the_start() -> None:
    assert t1_of_000(torch.full((1, 3, 2), 0.5), torch.ones(1, 3, 2)).tolist() == [0]


def test_t2_is_d_times_the_squared_norm_at_t1_of_any_neuron() -> None:
    total = recorded(
        [[1.0, 1.0], [2.0, 8.0], [5.0, 23.0], [5.0, 24.0]],
        [[1.0, 1.0], [2.0, 8.0], [6.0, 8.0], [5.0, 24.0]],
        [[1.0, 1.0], [2.0, 8.0], [5.9, 8.0], [5.0, 23.9]],
    )
    assert t2_of_000(total, torch.tensor([1, 1, 1]), 3).tolist() == [3, 2, -1]


def test_t2_cannot_come_before_t1() -> None:
    total = recorded([[9.0], [9.0], [1.0], [2.0], [3.0]])
    assert t2_of_000(total, torch.tensor([2]), 3).tolist() == [4]


def test_without_t1_there_is_no_t2() -> None:
    total = recorded([[1.0], [100.0]])
    assert t2_of_000(total, torch.tensor([-1]), 3).tolist() == [-1]
    assert t2_of_000(total, torch.tensor([0]), 3).tolist() == [1]


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2)])
def test_at_step_reads_each_run_at_its_own_step(shape: tuple[int, ...]) -> None:
    values = torch.arange(math.prod(shape)).reshape(shape)
    found = at_step(values, torch.tensor([3, 0, 2]))
    assert torch.equal(found, torch.stack([values[0, 3], values[1, 0], values[2, 2]]))
