"""Spectrum and effective rank against closed forms and singular values."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.measure.representation.spectrum import effective_rank, spectrum


def axes(*lengths: float) -> torch.Tensor:
    """Two points on each axis, at these distances from 0: known singular values, mean 0."""
    points = torch.diag(torch.tensor(lengths, dtype=torch.float64))
    return torch.cat([points, -points])


def test_equal_directions_count_one_each() -> None:
    assert effective_rank(axes(2.0, 2.0, 2.0)) == pytest.approx(3)
    assert effective_rank(axes(2.0, 0.0, 0.0)) == pytest.approx(1)
    assert effective_rank(axes(1.0, 1.0, 1.0).float() + 5) == pytest.approx(3, rel=1e-5)


def test_unequal_ones_by_the_entropy_of_singular_values_not_of_variances() -> None:
    points = axes(3.0, 1.0)  # singular values 3 : 1, variances 9 : 1
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert effective_rank(points) == pytest.approx(math.exp(entropy))
    assert spectrum(points).tolist() == pytest.approx([0.9, 0.1])


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), st.integers(1, 9), st.integers(0, 99))
def test_as_from_singular_values_and_blind_to_shift_scale_and_rotation(n, d, seed):
    draws = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, d, generator=draws, dtype=torch.float64)
    values = torch.linalg.svdvals(rows - rows.mean(dim=0)).square()
    found = spectrum(rows)
    assert len(found) == min(n, d)
    torch.testing.assert_close(found, values / values.sum(), atol=1e-9, rtol=0)
    turn = torch.linalg.qr(torch.randn(d, d, generator=draws, dtype=torch.float64))[0]
    torch.testing.assert_close(spectrum(3 * rows @ turn + 7), found, atol=1e-9, rtol=0)
    assert 1 - 1e-9 <= effective_rank(rows) <= min(n - 1, d) + 1e-3


# ----------------------------------------------------------------------------------- effective rank


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
    with pytest.raises(UsageError, match="1 of 4 rows hold NaN"):
        effective_rank(torch.tensor([[0.0], [1.0], [math.nan], [2.0]]))
