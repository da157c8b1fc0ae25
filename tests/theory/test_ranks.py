"""Laws of ranks against scipy's binomial, direct sums and sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rarefy.core.errors import UsageError
from rarefy.theory.ranks import MOST_NODES, RankTally, binomial_law, binomial_nodes


@pytest.mark.parametrize("count", [0, 1, 9, 300])
def test_binomial_law(count: int) -> None:
    chance = np.array([0.0, 1e-200, 1e-6, 0.3, 0.999, 1.0])
    exact = stats.binom.pmf(np.arange(count + 1), count, chance[:, None])
    np.testing.assert_allclose(binomial_law(count, chance), exact, rtol=1e-9, atol=1e-13)


@given(count=st.integers(1, 3000), chance=st.floats(0.01, 0.99))
def test_nodes_have_the_moments_of_the_binomial(count: int, chance: float) -> None:
    nodes = binomial_nodes(count, chance)
    value, weight = np.array(nodes).T
    assert len(nodes) <= 2 * MOST_NODES and (weight >= 0).all()
    assert weight.sum() == pytest.approx(1)
    mean, variance, skew = stats.binom.stats(count, chance, moments="mvs")
    assert weight @ value == pytest.approx(float(mean))
    centred = value - float(mean)
    assert weight @ centred**2 == pytest.approx(float(variance), rel=1e-5, abs=1e-9)
    third = float(skew) * float(variance) ** 1.5
    assert weight @ centred**3 == pytest.approx(third, rel=1e-4, abs=1e-4 * variance**1.5)


def test_a_few_atoms_are_the_binomial_itself() -> None:
    assert binomial_nodes(2, 0.5) == ((0.0, 0.25), (1.0, 0.5), (2.0, 0.25))
    assert binomial_nodes(0, 0.3) == ((0.0, 1.0),)
    (only,) = binomial_nodes(0.5, 0.3)  # not whole: the mean is all there is to match
    assert only == (pytest.approx(0.15), pytest.approx(1.0))


@pytest.mark.parametrize(("many", "few"), [(1, 0), (20, 1), (190, 9), (1000, 4)])
def test_a_tally_is_a_binomial_plus_the_few(many: int, few: int) -> None:
    """Four settings against the convolution written out; the grid costs less than 1e-3."""
    rng = np.random.default_rng(0)
    weight, chance = np.full(4, 0.25), np.array([0.0, 0.03, 0.4, 1.0])
    laws = rng.dirichlet(np.ones(few + 1), size=4)
    tally = RankTally(many, few)
    tally.add(weight[:2], chance[:2], laws[:2])
    tally.add(weight[2:], chance[2:], laws[2:])
    exact = sum(
        0.25 * np.convolve(stats.binom.pmf(np.arange(many + 1), many, p), law)
        for p, law in zip(chance, laws, strict=True)
    )
    found = tally.law()
    assert np.abs(np.cumsum(found) - np.cumsum(exact)).max() < 1e-3
    assert found.sum() == pytest.approx(1) and not found.flags.writeable


def test_bad_values_are_named() -> None:
    with pytest.raises(UsageError, match="chance=.*must be between 0 and 1"):
        binomial_law(3, np.array([1.1]))
    with pytest.raises(UsageError, match="chance=1.0: must lie between 0 and 1"):
        binomial_nodes(3, 1.0)
    for count in (-1, math.inf, math.nan):
        with pytest.raises(UsageError, match="count=.*must be finite and at least 0"):
            binomial_nodes(count, 0.5)
