"""Tables of eigenvalues, |A_k^T A_j|_F^2 and Gamma: formula and matrices agree (003)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_noise import special_direction
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.noise_structure import gram, special_axes


def draws_of(groups: int, *name: object) -> Draws:
    return Draws([key("structure", *name, group) for group in range(groups)], dtype=torch.float64)


# ------------------------------------------------------------------------------------- the formulas


@settings(deadline=None, max_examples=25)
@given(
    classes=st.integers(2, 4),
    extra=st.integers(1, 5),
    seed=st.integers(0, 10**6),
    symmetric=st.booleans(),
)
def test_gram_is_that_of_the_matrices(classes: int, extra: int, seed: int, symmetric: bool) -> None:
    d, draws = classes + extra, draws_of(2, "gram", seed)
    table = 3 * draws.uniform("table", (classes, d))
    table[:, :, :classes] = 0
    basis = torch.linalg.qr(draws.normal("basis", (d, d))).Q[:, None]
    matrices = basis * table[:, :, None, :]  # U Lambda_k
    if symmetric:
        matrices = matrices @ basis.transpose(2, 3)
    plain = torch.stack(
        [
            torch.stack([(a.T @ b).square().sum() for a in group for b in group])
            for group in matrices
        ]
    ).reshape(2, classes, classes)
    torch.testing.assert_close(gram(table), plain)


def test_gram_by_hand() -> None:
    table = torch.tensor([[[0.0, 0, 2, 1, 0], [0, 0, 1, 1, 3]]])
    # |A_0^T A_0|^2 = 16 + 1, |A_0^T A_1|^2 = 4 + 1, |A_1^T A_1|^2 = 1 + 1 + 81
    assert gram(table).tolist() == [[[17.0, 5.0], [5.0, 83.0]]]


# ------------------------------------------------------------------------------------------ presets


@given(st.integers(2, 5), st.integers(0, 8), st.data())
def test_special_directions_have_their_rank_and_one_other_eigenvalue(
    classes: int, extra: int, data: st.DataObject
) -> None:
    d = 2 * classes + extra
    most = d - classes
    rank = data.draw(st.one_of(st.none(), st.integers(classes, most)))
    table = special_direction(3.0, d, classes, base=0.5, rank=rank)
    assert table.shape == (1, classes, d)
    there = table > 0
    assert bool((there.sum(dim=2) == (most if rank is None else rank)).all())
    assert bool(((table == 3.0).sum(dim=2) == 1).all())
    assert torch.equal((table[0] == 3.0).long().argmax(dim=1), special_axes(classes))
    assert bool(((table == 0.5) | (table == 3.0) | ~there).all())
    common = gram(there.double())[0]
    off = ~torch.eye(classes, dtype=torch.bool)
    assert bool((common[off] == common.max()).all())


# ----------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gram(torch.zeros(1, 1, 5)), "classes=1: must be at least 2"),
        (lambda: gram(torch.zeros(1, 3, 3)), "classes=3: must be below d=3: noise needs direct.*"),
        (lambda: gram(-torch.ones(1, 2, 3)), "eigenvalues=-1.0: must be finite and at least 0"),
        (lambda: gram(math.nan * torch.ones(1, 2, 3)), "eigenvalues=nan: must be finite and .* 0"),
        (lambda: gram(torch.ones(2, 5)), r"eigenvalues=\(2, 5\): must be \(group, classes, d\)"),
        (lambda: gram(torch.ones(1, 2, 5)), "eigenvalues=1.0: must be 0 on the first 2 axes: .*"),
        (
            lambda: special_direction(1.0, 10, 3, rank=8),
            "rank=8: must be in 3..7 with 3 classes and d=10",
        ),
        (
            lambda: special_direction(1.0, 10, 3, rank=0),
            "rank=0: must be in 3..7 with 3 classes and d=10",
        ),
        (
            lambda: special_direction(1.0, 5, 3),
            "rank=2: there is no room for any with 3 classes and d=5",
        ),
        (
            lambda: special_direction(0.0, 8, 2),
            "special=0.0: a special eigenvalue must be more.* 0",
        ),
        (
            lambda: special_direction(1.0, 8, 2, base=0.0),
            "base=0.0: must be finite and more than 0",
        ),
    ],
)
def test_what_is_outside_the_model_is_refused(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$") as error:
        call()
    assert "\n" not in str(error.value)
