"""Bases of the noise: random rotations are uniform.

Statistical bounds are five standard errors or a p-value of 1e-3; the draws are fixed, so a bound is
met always or never.
"""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.class_noise import rotation

SIGMAS, LEAST_P = 5.0, 1e-3


def draws_of(groups: int = 1, name: str = "noise") -> Draws:
    keys = [key("class noise", name, group) for group in range(groups)]
    return Draws(keys, dtype=torch.float64)


# ------------------------------------------------------------------------------------- the rotation


@settings(deadline=None, max_examples=20)
@given(d=st.integers(1, 30), seed=st.integers(0, 10**6))
def test_a_rotation_is_orthogonal(d: int, seed: int) -> None:
    basis = rotation(Draws([seed, seed + 1], dtype=torch.float64), d)
    assert basis.shape == (2, d, d)
    assert (basis.mT @ basis - torch.eye(d)).abs().max() < 1e-12


def test_rotations_are_uniform_signs_included() -> None:
    n, d = 4000, 3
    basis = rotation(draws_of(n, "haar"), d)
    # of a uniform rotation each entry has mean 0 and each coordinate of a column is uniform on
    # (-1, 1) in three dimensions (Archimedes); without the sign correction the diagonal is lopsided
    for row in range(d):
        for column in range(d):
            entry = basis[:, row, column].numpy()
            assert stats.kstest(entry, stats.uniform(-1, 2).cdf).pvalue > LEAST_P
    trace = torch.diagonal(basis, dim1=1, dim2=2).sum(dim=1)
    # E trace = 0 and E trace^2 = 1 over the orthogonal group
    assert abs(trace.mean().item()) < SIGMAS / math.sqrt(n)
    assert abs(trace.square().mean().item() - 1) < SIGMAS * trace.square().std().item() / n**0.5
    determinant = torch.linalg.det(basis)
    assert abs(determinant.mean().item()) < SIGMAS / math.sqrt(n)


def test_a_rotation_of_no_dimensions_is_refused() -> None:
    with pytest.raises(UsageError, match="^d=0: must be at least 1$"):
        rotation(draws_of(), 0)
