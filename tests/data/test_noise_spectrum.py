"""Spectra of the noise: few numbers say the same as a table with all directions; structures."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_noise import homogeneous, special_direction

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.noise_spectrum import Spectrum, special_spectrum, spectrum_for
from rarefy.data.noise_structure import gram, special_axes
from rarefy.theory.benign import noise_correlation_ratio

F64 = torch.float64


def kinds(count: list[list[float]], silent: list[float]) -> Spectrum:
    """Two classes; after features and special directions two kinds, one of class 1 alone."""
    rows = len(count)
    values = torch.zeros(rows, 2, 6, dtype=F64)
    values[:, :, 2:5] = torch.tensor([[3.0, 1.0, 0.5], [1.0, 2.0, 0.5]])
    values[:, 1, 5] = 0.7
    single = torch.ones(rows, 4, dtype=F64)
    many = torch.tensor(count, dtype=F64)
    return Spectrum(values, torch.cat([single, many], 1), torch.tensor(silent, dtype=F64))


def matches_its_table(spectrum: Spectrum) -> None:
    table = spectrum.table()
    torch.testing.assert_close(spectrum.gram(), gram(table))
    torch.testing.assert_close(spectrum.trace(), table.square().sum(dim=2))
    assert torch.equal(spectrum.rank(), (table > 0).sum(dim=2).to(F64))
    assert (spectrum.d == table.shape[2]).all()


@given(
    left=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    right=st.integers(0, 9),
    silent=st.integers(0, 4),
)
def test_sums_are_those_of_the_table(left: list[int], right: int, silent: int) -> None:
    """Also of kinds without directions, and where runs differ in them (but not in d)."""
    total = max(left) + right
    count = [[float(own), float(total - own)] for own in left]
    matches_its_table(kinds(count, [float(silent)]))


def test_a_table_lists_kinds_one_after_the_other_and_what_is_silent_last() -> None:
    found = kinds([[2, 1], [0, 2]], [1.0, 2.0]).table()
    assert found.shape == (2, 2, 8)
    assert found[0, 1].tolist() == [0, 0, 1, 2, 0.5, 0.5, 0.7, 0]
    assert found[1, 1].tolist() == [0, 0, 1, 2, 0.7, 0.7, 0, 0]
    assert found[1, 0].tolist() == [0, 0, 3, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("rank", [None, 5, 3])
def test_special_directions_of_every_rank(rank: int | None) -> None:
    special = torch.tensor([[1.5, 2.0, 0.5], [3.0, 3.0, 3.0]], dtype=F64)
    matches_its_table(special_spectrum(special, 12, 3, 0.8, rank))


def test_equal_special_eigenvalues_are_noise_of_one_kind() -> None:
    spectrum = special_spectrum(0.7, 11, 3, 0.7)
    assert torch.equal(spectrum.table(), homogeneous(11, 3, 0.7))


def test_special_eigenvalues_may_be_rescaled_alone() -> None:
    spectrum = special_spectrum(2.0, 9, 3, 0.5)
    scaled = spectrum.with_special(1.5)
    assert torch.equal(scaled.table(), special_direction(3.0, 9, 3, 0.5))
    assert torch.equal(spectrum.table(), special_direction(2.0, 9, 3, 0.5))


def test_joined_ones_keep_their_rows() -> None:
    parts = [kinds([[2, 1]], [1.0]), kinds([[0, 3]], [1.0]), kinds([[2, 1]], [1.0])]
    joined = Spectrum.joined(parts)
    assert len(joined) == 3 and len(joined.count) == 3
    assert torch.equal(joined.table(), torch.cat([part.table() for part in parts]))
    alike = Spectrum.joined([special_spectrum(float(x), 30, 2) for x in (1, 2, 3)])
    assert len(alike) == 3 and len(alike.count) == 1
    special = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert torch.equal(alike.table(), special_direction(special, 30, 2))


# ------------------------------------------------------------------------- a billion of directions


def test_the_papers_grid_has_all_ratios_equal_to_the_wanted_one() -> None:
    # 003 Fig. 3: K = 5, d = 1000, Gamma from 1 to 1400, equal sizes
    wanted = torch.linspace(1, 1400, 100, dtype=torch.float64)
    table = spectrum_for(wanted, 1000, 5).table()
    assert table.shape == (100, 5, 1000)
    ratio = torch.from_numpy(noise_correlation_ratio(gram(table), np.full(5, 100)))
    off = ~torch.eye(5, dtype=torch.bool)
    assert (ratio[:, off] / wanted[:, None] - 1).abs().max() < 1e-9
    # all but one of the d - K non-zero eigenvalues are 0.5
    assert bool(((table == 0.5).sum(dim=2)[1:] == 994).all())
    assert torch.equal(table[0], 0.5 * homogeneous(1000, 5)[0])
    special = table[:, 0].amax(dim=1)
    assert bool((special.diff() > 0).all())


def test_a_wanted_ratio_in_a_billion_of_directions() -> None:
    gamma = torch.tensor([4.0, 30.0, 1000.0], dtype=F64)
    found = spectrum_for(gamma, 10**9, 3)
    ratio = torch.from_numpy(noise_correlation_ratio(found.gram(), np.full(3, 7)))
    ratio = ratio.masked_fill(torch.eye(3, dtype=torch.bool), torch.inf).amin(dim=2)
    # float64 has 1e-16 of a sum of a billion, the special direction's share of it is 1e-5 or more
    np.testing.assert_allclose(ratio, gamma[:, None].expand(-1, 3), rtol=1e-9)
    assert found.eigenvalues.numel() == 3 * 3 * 7 and found.d.tolist() == [1e9]


# --------------------------------------------------------------------------------------- structures


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
        (
            lambda: special_direction(1.0, 10**9, 2),
            "d=1000000000: too many directions to write out; use the dual form",
        ),
        *(
            (lambda gamma=gamma: spectrum_for(gamma, 10, 3), f"gamma={gamma}: .* is .1, 1e150.*")
            for gamma in (0.999, -1.0, float("nan"), float("inf"))
        ),
        (
            lambda: spectrum_for(2.0, 10, 3, rank=8),
            "rank=8: must be in 3..7 with 3 classes and d.*",
        ),
        (
            lambda: kinds([[2, 1], [0, 2]], [1.0]).table(),
            r"count=\[7.0, 8.0\]: all runs need the same d",
        ),
        (lambda: kinds([[-1, 1]], [0.0]), "count=-1.0: must be at least 0"),
        (lambda: kinds([[1, 1]], [-2.0]), "count=-2.0: must be at least 0"),
        (
            lambda: Spectrum(torch.zeros(1, 2, 3), torch.ones(1, 3)),
            r"eigenvalues=\(1, 2, 3\): needs 4 kinds at least: a feature and a special one per "
            r"class",
        ),
        (
            lambda: Spectrum(torch.zeros(3, 2, 4), torch.ones(2, 4)),
            r"count=\(2, 4\): must be \(3 or 1, 4\)",
        ),
        (
            lambda: Spectrum(torch.zeros(1, 2, 4), torch.ones(1, 5)),
            r"count=\(1, 5\): must be \(1 or 1, 4\)",
        ),
        (
            lambda: Spectrum(torch.zeros(1, 2, 4), torch.tensor([[1.0, 1, 1, 2]])),
            "count=2.0: must be 1 for the first 4 kinds: features, special directions",
        ),
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
def test_what_is_outside_the_model_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$") as error:
        call()
    assert "\n" not in str(error.value)
