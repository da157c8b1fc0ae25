"""Bisection finds a turn where a full grid would, with far fewer runs, and audits tell a second."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.bisection import find_boundary

LOW, HIGH = torch.full((1,), -3.0), torch.full((1,), 2.0)


@given(turns=st.lists(st.floats(-2.9, 1.9), min_size=1, max_size=5), precision=st.floats(1e-3, 0.5))
def test_it_finds_every_rows_turn_to_the_precision(turns: list[float], precision: float) -> None:
    true = torch.tensor(turns, dtype=torch.float64)
    asked = []

    def decide(place: Tensor) -> Tensor:
        asked.append(place)
        return place >= true

    low, high = torch.full_like(true, -3.0), torch.full_like(true, 2.0)
    found = find_boundary(decide, low, high, precision, audits=1)
    assert (found.outside == 0).all()
    assert ((found.place - true).abs() <= precision / 2 + 1e-12).all()
    assert (found.agree == 1).all()
    assert len(asked) == found.runs + found.audits
    assert found.runs == math.ceil(math.log2(5 / precision)) + 2
    grid = torch.linspace(-3, 2, found.grid, dtype=torch.float64)
    assert grid[1] - grid[0] <= precision + 1e-12


def test_rows_without_a_turn_say_on_which_side_it_is() -> None:
    true = torch.tensor([-5.0, 0.0, 5.0])
    found = find_boundary(lambda place: place >= true, LOW.expand(3), HIGH.expand(3), 0.1, audits=2)
    assert found.outside.tolist() == [-1, 0, 1]
    assert found.place.isnan().tolist() == [True, False, True]
    assert found.agree.isnan().tolist() == [True, False, True]


def test_audits_see_an_outcome_that_turns_more_than_once() -> None:
    def island(place: Tensor) -> Tensor:
        return (place >= 0) | ((place > -2) & (place < -1))

    found = find_boundary(island, LOW, HIGH, 0.01, audits=1)
    assert found.agree.item() == 0.5  # the audit at -1.5 contradicts the turn at 0


def test_nothing_is_audited_unless_asked_for() -> None:
    found = find_boundary(lambda place: place >= 0, LOW, HIGH, 0.1)
    assert found.audits == 0 and found.agree.isnan().all()


@pytest.mark.parametrize(
    ("precision", "audits", "message"),
    [
        (0.0, 0, "precision=0.0: must be positive and finite"),
        (9.0, 0, "range=5.0: must be wider than the precision, 9"),
        (0.1, -1, "audits=-1: must be at least 0"),
    ],
)
def test_searches_that_make_no_sense_are_refused(
    precision: float, audits: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        find_boundary(lambda place: place >= 0, LOW, HIGH, precision, audits)
