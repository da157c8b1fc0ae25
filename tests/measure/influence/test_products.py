"""The products: only half is done and only half is read; pointers are given what they expect."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.measure.influence.blas import add_to_upper, times_upper_in_place
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


def test_whitening_is_a_root_of_the_inverse():
    rows = torch.randn(30, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    covariance = rows.T @ rows
    factor = whitening(covariance)
    assert torch.equal(factor, factor.triu())
    assert torch.allclose(factor @ factor.T, covariance.inverse(), rtol=1e-10)


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
