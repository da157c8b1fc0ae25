"""The products: only half is done and only half is read; pointers are given what they expect."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.measure.influence.blas import (
    add_to_upper,
    inverse_root_in_place,
    times_upper_in_place,
)
from rarefy.measure.influence.core_pool import CorePool
from rarefy.measure.influence.products import (
    add_scatter,
    double_diagonal,
    halve_diagonal,
    quadratic_form,
    square_norm,
    symmetric,
    times_upper,
    whitening,
)


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 9))
def test_against_plain_products(seed, count, width):
    random = np.random.default_rng(seed)
    rows = torch.from_numpy(random.standard_normal((count, width)))
    before = torch.from_numpy(random.standard_normal((width, width)))
    scatter = before.clone()
    add_scatter(scatter, rows)
    assert torch.allclose(scatter.triu(), (before + rows.T @ rows).triu(), rtol=1e-12, atol=1e-12)
    assert torch.equal(scatter.tril(-1), before.tril(-1))
    kept = rows.clone()
    assert torch.allclose(
        times_upper(rows.clone(), scatter), rows @ scatter.triu(), rtol=1e-12, atol=1e-12
    )
    assert torch.equal(rows, kept)
    whole = symmetric(scatter)
    assert torch.equal(whole, whole.T)
    assert square_norm(scatter) == pytest.approx(float(whole.square().sum()), rel=1e-12)
    halve_diagonal(scatter)
    expected = torch.einsum("ia,ab,ib->i", rows, whole, rows)
    assert torch.allclose(quadratic_form(rows, scatter), expected, rtol=1e-11, atol=1e-11)
    double_diagonal(scatter)
    assert torch.equal(symmetric(scatter), whole)


def test_the_norm_of_a_wide_matrix():
    whole = torch.randn(700, 700, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = whole + whole.T
    assert square_norm(whole) == pytest.approx(float(whole.square().sum()), rel=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 6, 33, 200]))
def test_whitening_is_a_root_of_the_inverse(seed, width):
    draws = torch.Generator().manual_seed(seed)
    rows = torch.randn(4 * width + 9, width, dtype=torch.float64, generator=draws)
    covariance = rows.T @ rows
    given_to = covariance.triu() + torch.full_like(covariance, torch.nan).tril(-1)
    factor = whitening(given_to)
    assert factor is given_to and bool(factor.tril(-1)[1:, 0].isnan().all())  # nobody asked there
    factor = factor.triu()
    whole = factor @ factor.T @ covariance
    assert torch.allclose(whole, torch.eye(width, dtype=torch.float64), atol=1e-10)
    upper = torch.linalg.cholesky(covariance).T
    assert torch.allclose(factor, upper.inverse(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, -np.inf, np.inf])
@pytest.mark.parametrize("place", [(0, 0), (3, 3), (150, 150), (2, 90)])
def test_what_is_not_positive_definite_is_refused_as_by_torch(value, place):
    matrix = torch.eye(151, dtype=torch.float64)
    matrix[place] = value
    whole = symmetric(matrix)
    try:
        torch.linalg.cholesky(whole)
    except torch.linalg.LinAlgError:
        with pytest.raises(torch.linalg.LinAlgError, match="is not positive-definite"):
            whitening(whole)
    else:
        whitening(whole)


@pytest.mark.parametrize("call", [add_to_upper, times_upper_in_place])
def test_a_pointer_gets_only_what_it_expects(call):
    square, rows = np.zeros((3, 3)), np.zeros((4, 3))
    given_to = (square, rows) if call is add_to_upper else (rows, square)
    call(*given_to)
    for spoil in (
        lambda m: m.astype(np.float16),
        lambda m: np.asfortranarray(m),
        lambda m: np.zeros((m.shape[0], m.shape[1] + 1)),
    ):
        for which in (0, 1):
            spoiled = [spoil(m) if at == which else m for at, m in enumerate(given_to)]
            with pytest.raises(ValueError, match="needs a contiguous float64 matrix of shape"):
                call(*spoiled)
    with pytest.raises(ValueError, match="needs a contiguous float"):
        call(given_to[0].astype(np.float32), given_to[1])


@pytest.mark.parametrize(
    "spoiled",
    [np.eye(3, dtype=np.float32), np.asfortranarray(np.eye(3) + 1), np.zeros((3, 4)), np.ones(3)],
)
def test_a_factorisation_gets_only_what_it_expects(spoiled):
    with pytest.raises(ValueError, match=r"needs a contiguous float64 matrix of shape \(3, 3\)"):
        inverse_root_in_place(spoiled)


def test_triangular_products_in_float32():
    random = np.random.default_rng(0)
    rows, upper = (random.standard_normal(shape).astype(np.float32) for shape in ((5, 4), (4, 4)))
    expected = rows @ np.triu(upper)
    times_upper_in_place(rows, upper)
    assert np.allclose(rows, expected, atol=1e-5)


def test_a_core_pool_keeps_the_order_and_leaves_no_trace(threads):
    with CorePool(torch.device("cpu")) as pool:
        assert pool.size == threads
        assert pool.map(lambda x: x * x, range(20)) == [x * x for x in range(20)]
        with pytest.raises(ZeroDivisionError):
            pool.map(lambda x: 1 // x, [1, 0])
    assert torch.get_num_threads() == threads
    with CorePool(torch.device("cpu"), most=1) as pool:
        assert pool.size == 1
    with CorePool(torch.device("cuda")) as pool:  # needs none to say so
        assert pool.size == 1
