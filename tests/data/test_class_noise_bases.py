"""Bases of the noise: random rotations are uniform, and those given by hand are checked.

Statistical bounds are five standard errors or a p-value of 1e-3; the draws are fixed, so a bound is
met always or never. Exact identities are asked for in float64, to 1e-11.
"""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.class_noise import ClassNoise, rotation
from rarefy.data.noise_laws import LAWS

SIGMAS, LEAST_P, EXACT = 5.0, 1e-3, 1e-11


def draws_of(groups: int = 1, name: str = "noise") -> Draws:
    keys = [key("class noise", name, group) for group in range(groups)]
    return Draws(keys, dtype=torch.float64)


def labels_of(n: int, classes: int) -> Tensor:
    return (torch.arange(n) % classes)[None]


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


# --------------------------------------------------------------------------------- features by hand


@settings(deadline=None, max_examples=20)
@given(
    classes=st.integers(2, 4),
    count=st.integers(1, 4),
    extra=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_features_and_directions_given_by_hand(
    classes: int, count: int, extra: int, seed: int
) -> None:
    d = classes + count + extra
    basis = rotation(draws_of(1, f"by hand {seed}"), d)[0]
    norms = torch.arange(1, classes + 1).double()
    features = norms[:, None] * basis[:, :classes].T
    along = basis[:, classes : classes + count]
    table = 0.5 + draws_of(1, "table").uniform("table", (classes, count))
    noise = ClassNoise.of_features(features, 2 * along, table)
    data = noise.sample(draws_of(), labels_of(8, classes))
    torch.testing.assert_close(data.strength[0], norms)
    torch.testing.assert_close(data.features[0] * norms[:, None], features, rtol=0, atol=EXACT)
    zeta = LAWS["gaussian"].draw(draws_of(), "train zeta", (8, d))[0, :, classes : classes + count]
    plain = (zeta * table[0][data.labels[0]]) @ along.T
    torch.testing.assert_close(data.noise[0], plain, rtol=0, atol=EXACT)


EYE = torch.eye(6)


@pytest.mark.parametrize(
    ("features", "directions", "table", "message"),
    [
        (EYE[:2] + EYE[1], EYE[:, 2:4], (1, 2, 2), "features='largest cosine 0.707': features.*"),
        (
            EYE[:2],
            EYE[:, 1:4],
            (1, 2, 3),
            "directions='largest cosine 1': the noise must be orth.*",
        ),
        (
            EYE[:2],
            EYE[:, 2:4] + EYE[:, 3:4],
            (1, 2, 2),
            "directions='largest cosine 0.707': must .*",
        ),
        (EYE[:2], EYE[:, 2:4], (1, 2, 3), r"eigenvalues=\(1, 2, 3\): must be \(run or 1, 2, 2\).*"),
        (
            EYE[:2],
            EYE[:5, 2:4],
            (1, 2, 2),
            r"directions=\(5, 2\): must be \(d, r\) or .* at most 4",
        ),
        (EYE[:2], EYE[:, 1:], (1, 2, 5), r"directions=\(6, 5\): must be \(d, r\) or .* at most 4"),
        (EYE[:2], 0 * EYE[:, 2:4], (1, 2, 2), "directions=0.0: every norm must be more than 0"),
    ],
)
def test_features_and_directions_that_do_not_fit_are_refused(
    features: Tensor, directions: Tensor, table: tuple[int, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        ClassNoise.of_features(features, directions, torch.ones(table))
