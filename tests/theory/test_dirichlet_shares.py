"""The law of shares: closed forms, two routes against each other, direct integration, sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from rarefy.core.errors import UsageError
from rarefy.theory import dirichlet_shares
from rarefy.theory.dirichlet_shares import count_law, joint_probability


def sampled(d: int, n: int = 200_000) -> np.ndarray:
    """Shares of Gaussian vectors, (n, d)."""
    square = np.random.default_rng(d).normal(size=(n, d)) ** 2
    return square / square.sum(axis=1, keepdims=True)


def assert_close_to_a_count(exact: float, cases: np.ndarray) -> None:
    error = math.sqrt(max(exact * (1 - exact), 1e-12) / len(cases))
    assert abs(cases.mean() - exact) < 5 * error


@pytest.mark.parametrize("t", [0.01, 0.3, 0.5, 0.9])
def test_one_share_of_two_is_a_squared_cosine(t: float) -> None:
    exact = 1 - 2 / math.pi * math.asin(math.sqrt(t))
    assert joint_probability(2, (t,)) == pytest.approx(exact, rel=1e-12)
    # the other share is what is left
    both = max(0.0, 2 * exact - 1)
    assert joint_probability(2, (t, t)) == pytest.approx(both, abs=1e-12)
    assert joint_probability(2, (t,), 1 - t, 1) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("d", [2, 3, 5, 7, 8, 9, 12, 40, 200])
def test_the_largest_share_by_bonferroni_where_few_can_exceed(d: int) -> None:
    """At most one share exceeds 1/2, at most two exceed 1/3."""
    for x in (0.5, 0.7, 0.95):
        exact = 1 - d * stats.beta.sf(x, 0.5, (d - 1) / 2)
        assert count_law(d, x)[0] == pytest.approx(exact, abs=1e-11)
    for x in (0.34, 0.45):
        one, two = joint_probability(d, (x,)), joint_probability(d, (x, x))
        exact = 1 - d * one + d * (d - 1) / 2 * two
        assert count_law(d, x)[0] == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize("d", [8, 9, 10])
def test_line_and_bent_contour_agree(d: int) -> None:
    for above, below in (((0.3,), 0.25), ((0.05,), 0.3), ((0.2, 0.1), 0.2)):
        bounded = d - len(above)
        line = dirichlet_shares._on_a_line(d, above, below, bounded)
        bent = dirichlet_shares._inclusion_exclusion(d, above, below, bounded)
        assert line > 1e-4 and bent == pytest.approx(line, rel=1e-9)
        assert dirichlet_shares._joint_tail(d, above) == pytest.approx(
            dirichlet_shares._on_a_line(d, above, 1.0, 0), rel=1e-9
        )


def test_one_share_on_the_line_is_beta() -> None:
    for d in (8, 9, 30, 256):
        for t in (0.02, 0.3, 0.8):
            exact = stats.beta.sf(t, 0.5, (d - 1) / 2)
            assert dirichlet_shares._on_a_line(d, (t,), 1.0, 0) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(("d", "t1", "t2"), [(12, 0.5, 0.3), (30, 0.25, 0.12), (64, 0.52, 0.0325)])
def test_one_high_and_all_others_low_by_integration(d: int, t1: float, t2: float) -> None:
    """The others, over what is left, are shares of d - 1 features: the last case is 5e-13."""

    def density(b: float) -> float:
        rest = count_law(d - 1, t2 / (1 - b))[0] if b < 1 - t2 else 1.0
        return float(stats.beta.pdf(b, 0.5, (d - 1) / 2) * rest)

    top = min(1.0, t1 + 40 / d)
    direct, _ = integrate.quad(density, t1, top, epsabs=0, epsrel=1e-9, limit=200)
    assert joint_probability(d, (t1,), t2, d - 1) == pytest.approx(direct, rel=1e-7)


@pytest.mark.parametrize(
    ("d", "t1", "t2"), [(3, 0.4, 0.35), (6, 0.3, 0.3), (9, 0.4, 0.3), (20, 0.2, 0.15)]
)
def test_against_sampling(d: int, t1: float, t2: float) -> None:
    found = sampled(d)
    lucky = (found[:, 0] >= t1) & (found[:, 1:] <= t2).all(axis=1)
    assert_close_to_a_count(joint_probability(d, (t1,), t2, d - 1), lucky)
    two = (found[:, 0] >= t2) & (found[:, 1] >= t2)
    assert_close_to_a_count(joint_probability(d, (t2, t2)), two)
    some = (found[:, 0] >= t2) & (found[:, 1:3] <= t1).all(axis=1)
    assert_close_to_a_count(joint_probability(d, (t2,), t1, 2), some)
    above = (found >= t2).sum(axis=1)
    for k, exact in enumerate(count_law(d, t2)):
        assert_close_to_a_count(float(exact), above == k)


@given(d=st.integers(2, 60), t=st.floats(0.002, 0.98))
def test_the_law_of_the_count_has_the_moments_of_the_shares(d: int, t: float) -> None:
    law, k = count_law(d, t), np.arange(d + 1)
    assert (law >= 0).all() and law.sum() == pytest.approx(1, abs=1e-10)
    assert (k * law).sum() == pytest.approx(d * joint_probability(d, (t,)), abs=1e-9)
    pairs = d * (d - 1) * joint_probability(d, (t, t))
    assert (k * (k - 1) * law).sum() == pytest.approx(pairs, abs=1e-8)
    assert law[math.floor(1 / t) + 1 :].sum() < 1e-9  # shares sum to 1


@settings(deadline=None, max_examples=15)
@given(
    d=st.integers(3, 40),
    t1=st.floats(0.01, 0.9),
    t2=st.floats(0.02, 0.9),
    step=st.floats(0.001, 0.3),
)
def test_probabilities_move_with_their_thresholds(
    d: int, t1: float, t2: float, step: float
) -> None:
    here = joint_probability(d, (t1,), t2, d - 1)
    slack = 1e-10
    assert 0 <= here <= joint_probability(d, (t1,)) + slack
    assert joint_probability(d, (t1 + step,), t2, d - 1) <= here + slack
    assert joint_probability(d, (t1,), t2 + step, d - 1) >= here - slack
    assert joint_probability(d, (t1,), t2, d - 2) >= here - slack
    # one share high, split by whether the second is high as well
    split = joint_probability(d, (t1, t2)) + joint_probability(d, (t1,), t2, 1)
    assert split == pytest.approx(joint_probability(d, (t1,)), abs=1e-9)


def test_the_edges() -> None:
    assert joint_probability(9) == 1.0
    assert joint_probability(9, (0.0,)) == 1.0 and joint_probability(9, (1.0,)) == 0.0
    assert joint_probability(9, (0.5, 0.5)) == 0.0 and joint_probability(9, (1.7,)) == 0.0
    assert joint_probability(9, (0.3,), 1.0, 8) == joint_probability(9, (0.3,))
    assert joint_probability(9, (0.3,), 0.0, 8) == 0.0
    assert joint_probability(9, (), 0.1, 9) == pytest.approx(0, abs=1e-11)  # 9 of them sum to 0.9
    assert joint_probability(9, (), 0.6, 9) == pytest.approx(count_law(9, 0.6)[0])
    assert count_law(9, 1.0)[0] == 1.0 and count_law(9, 0.0)[9] == 1.0
    # far too small for a float
    assert joint_probability(4096, (0.5,), 0.0004, 4095) == 0.0


@pytest.mark.parametrize("d", [1, 0, -3, 2.5, True])
def test_a_number_of_features_that_makes_no_sense(d: int) -> None:
    for call in (lambda: joint_probability(d, (0.1,)), lambda: count_law(d, 0.1)):
        with pytest.raises(UsageError, match="must be a whole number, at least 2") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_more_conditions_than_shares() -> None:
    with pytest.raises(UsageError, match="bounded=4: together with 1 above, at most d=4"):
        joint_probability(4, (0.1,), 0.5, 4)


def test_thresholds_that_are_no_numbers() -> None:
    nan = float("nan")
    for call, name in (
        (lambda: joint_probability(9, (nan,)), "above"),
        (lambda: joint_probability(9, (0.1, nan), 0.5, 2), "above"),
        (lambda: joint_probability(9, (0.1,), nan, 8), "below"),
        (lambda: count_law(9, nan), "threshold"),
    ):
        with pytest.raises(UsageError, match=f"{name}=nan: must be a number"):
            call()
