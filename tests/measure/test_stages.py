"""Stage times on recorded norms whose answer is known."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.measure.stages import at_step, first_step, t1_of_000, t2_of_000


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
