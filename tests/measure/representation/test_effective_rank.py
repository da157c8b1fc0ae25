"""How many directions features use: closed forms and what may not change it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.measure.representation.spectrum import effective_rank


def test_even_spread_counts_directions_and_a_line_is_one() -> None:
    for d in (2, 5, 9):
        assert effective_rank(torch.eye(d)) == pytest.approx(d - 1, rel=1e-6)
        assert effective_rank(torch.cat([torch.eye(d), -torch.eye(d)])) == pytest.approx(d)
    line = torch.arange(10.0)[:, None] * torch.tensor([[1.0, -2.0, 0.5]])
    assert effective_rank(line + 3) == pytest.approx(1, abs=1e-5)
    assert effective_rank(torch.ones(4, 3)) == 0


def test_it_is_exp_of_the_entropy_of_normalised_singular_values() -> None:
    rows = torch.diag(torch.tensor([3.0, 1.0], dtype=torch.float64))
    rows = torch.cat([rows, -rows])
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert effective_rank(rows) == pytest.approx(math.exp(entropy))


@given(st.integers(0, 10_000))
def test_rotation_shift_and_scale_change_nothing(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(12, 5, generator=draw, dtype=torch.float64)
    turn, _ = torch.linalg.qr(torch.randn(5, 5, generator=draw, dtype=torch.float64))
    moved = 7 * rows @ turn + torch.randn(5, generator=draw, dtype=torch.float64)
    found = effective_rank(rows)
    assert 1 <= found <= 5 and effective_rank(moved) == pytest.approx(found)


def test_bad_features_are_named() -> None:
    with pytest.raises(UsageError, match="must have the shape"):
        effective_rank(torch.ones(3))
    with pytest.raises(UsageError, match="hold NaN"):
        effective_rank(torch.full((2, 2), math.nan))
