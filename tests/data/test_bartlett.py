"""Turned Gaussian vectors have the Gram matrix of plain ones, in law, in any dimension."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.bartlett import bartlett_factor, chi, gaussian_in_span

LEVEL = 1e-4
"""Chance of a false alarm of each test; the draws are fixed, so it passes always or never."""


def draws(runs: int, first: int = 0) -> Draws:
    return Draws(range(first, first + runs), dtype=torch.float64)


def freedom(runs: int, d: float) -> torch.Tensor:
    return torch.full((runs,), d, dtype=torch.float64)


@pytest.mark.quick("2", "1000000000")
@pytest.mark.parametrize("free", [1, 2, 5, 100, 10**6, 10**9])
def test_chi_has_its_law(free: int) -> None:
    found = chi(draws(5000).normal("lengths", ()), freedom(5000, free)).numpy()
    assert stats.kstest(found**2, stats.chi2(free).cdf).pvalue > LEVEL


def test_chi_is_its_quantile_function_and_0_without_freedom() -> None:
    normal = torch.tensor([-5.0, -1.0, 0.0, 1.0, 5.0], dtype=torch.float64)
    for free in (1.0, 7.0, 1e9):
        found = chi(normal, freedom(5, free)).numpy()
        lower = stats.chi2(free).ppf(stats.norm.cdf(normal.numpy()[:3]))
        upper = stats.chi2(free).isf(stats.norm.sf(normal.numpy()[2:]))
        assert np.allclose(found[:3] ** 2, lower, rtol=1e-9)
        assert np.allclose(found[2:] ** 2, upper, rtol=1e-9)
    assert (chi(normal, freedom(5, 0.0)) == 0).all()
    assert (chi(normal, freedom(5, -3.0)) == 0).all()


@pytest.mark.quick("3", "50")
@pytest.mark.parametrize("d", [2, 3, 4, 50])
def test_inner_products_have_the_law_of_gaussian_vectors(d: int) -> None:
    """Also where there are more vectors (4) than coordinates."""
    runs, rows = 4000, 4
    found = bartlett_factor(draws(runs), "noise", rows, freedom(runs, d))
    assert found.shape == (runs, rows, rows)
    plain = draws(runs, 10**6).normal("plain", (rows, d))
    grams = [each @ each.transpose(1, 2) for each in (found, plain)]
    for i, j in ((0, 0), (0, 1), (1, 2), (2, 3), (3, 3)):
        both = [gram[:, i, j].numpy() for gram in grams]
        assert stats.ks_2samp(*both).pvalue > LEVEL
    # a determinant mixes all entries
    both = [torch.linalg.det(gram[:, :2, :2]).numpy() for gram in grams]
    assert stats.ks_2samp(*both).pvalue > LEVEL
    traces = [torch.diagonal(gram @ gram, dim1=1, dim2=2).sum(dim=1).numpy() for gram in grams]
    assert stats.ks_2samp(*traces).pvalue > LEVEL


def test_what_further_vectors_show_has_the_law_it_should() -> None:
    """Inner products of two turned vectors with a third that lies anywhere."""
    runs, d = 4000, 30
    noise = bartlett_factor(draws(runs), "noise", 2, freedom(runs, d))
    third = gaussian_in_span(draws(runs), "third", (1,), 2, freedom(runs, d))
    found = (noise @ third.transpose(1, 2))[:, :, 0]
    plain = draws(runs, 10**6)
    expected = (plain.normal("noise", (2, d)) * plain.normal("third", (1, d))).sum(dim=2)
    for statistic in (lambda x: x[:, 0], lambda x: x[:, 1], lambda x: x[:, 0] * x[:, 1]):
        both = statistic(found).numpy(), statistic(expected).numpy()
        assert stats.ks_2samp(*both).pvalue > LEVEL


@given(rows=st.integers(1, 7), d=st.lists(st.integers(1, 12), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_the_rank_is_that_of_so_many_vectors(rows: int, d: list[int]) -> None:
    free = torch.tensor(d, dtype=torch.float64)
    found = bartlett_factor(draws(len(d)), "noise", rows, free)
    for run, own in enumerate(d):
        rank = min(rows, own)
        assert torch.linalg.matrix_rank(found[run]) == rank
        assert (found[run, :, rank:] == 0).all()
        alone = bartlett_factor(draws(1, run), "noise", rows, free[run : run + 1])
        torch.testing.assert_close(alone[0], found[run], rtol=0, atol=0)


def test_runs_that_share_their_draws_differ_only_in_dimension() -> None:
    free = torch.tensor([1e2, 1e9], dtype=torch.float64)
    found = bartlett_factor(draws(1), "noise", 5, free)
    below = found.tril(diagonal=-1)
    torch.testing.assert_close(below[0], below[1], rtol=0, atol=0)
    lengths = torch.diagonal(found, dim1=1, dim2=2)
    assert (lengths[1] > 1e4 * 0.99).all() and (lengths[0] < 20).all()


def test_noise_without_coordinates_is_refused() -> None:
    with pytest.raises(UsageError, match="freedom=0.0: every run needs at least 1 coordinate"):
        bartlett_factor(draws(2), "noise", 3, torch.tensor([5.0, 0.0], dtype=torch.float64))
