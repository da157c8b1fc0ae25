"""Neuron sets at initialisation: exact laws against sampling and each other, orders, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.theory import initial_sets as theory
from rarefy.theory.contrastive import lucky_count_order, set_constants
from rarefy.theory.dirichlet_shares import joint_probability


def weights(d: int, n: int = 200_000) -> np.ndarray:
    """Projections of standard Gaussian neurons, (n, d)."""
    return np.random.default_rng(100 + d).normal(size=(n, d))


def within(exact: float, cases: np.ndarray) -> bool:
    return abs(cases.mean() - exact) < 5 * math.sqrt(max(exact, 1e-9) / len(cases))


# ------------------------------------------------------------------------------------- exact laws


@pytest.mark.parametrize(("d", "ratio"), [(2, 1.0), (9, 0.85), (9, 1.0), (32, 0.8), (32, 1.0)])
def test_definition_b_1_on_sampled_neurons(d: int, ratio: float) -> None:
    along = weights(d)
    square = along**2
    c1, c2 = set_constants(ratio)
    unit = math.log(d) / d * square.sum(axis=1, keepdims=True)
    member = square >= c2 * unit
    assert within(theory.ordinary_probability(d, ratio), member[:, 0])
    others_low = (square[:, 1:] <= c2 * unit).all(axis=1)
    high = square[:, 0] >= (c1 * unit)[:, 0]
    assert within(theory.high_probability(d, ratio), high)
    assert within(theory.lucky_probability(d, ratio), high & others_low)
    sizes = member.sum(axis=1)
    for k, exact in enumerate(theory.set_size_law(d, ratio)):
        assert within(float(exact), sizes == k), k
    networks = sizes.reshape(-1, 25).max(axis=1)
    error = networks.std() / math.sqrt(len(networks))
    exact = theory.expected_largest_set(d, ratio, 25)
    assert abs(networks.mean() - exact) <= 5 * error + 1e-12


@settings(deadline=None, max_examples=30)
@given(d=st.integers(2, 80), low=st.floats(0.2, 0.99), step=st.floats(0.01, 0.5))
def test_balance_shrinks_the_ordinary_sets_and_grows_the_lucky_ones(
    d: int, low: float, step: float
) -> None:
    high = min(1.0, low + step)
    slack = 1e-11
    assert theory.ordinary_probability(d, high) < theory.ordinary_probability(d, low)
    assert theory.lucky_probability(d, high) >= theory.lucky_probability(d, low) - slack
    for ratio in (low, high):
        lucky = theory.lucky_probability(d, ratio)
        assert 0 <= lucky <= theory.high_probability(d, ratio) * (1 + 1e-9)
        assert theory.high_probability(d, ratio) <= theory.ordinary_probability(d, ratio)
        assert d * lucky <= 1 + slack  # a neuron is lucky in one feature at most
        mean = (np.arange(d + 1) * theory.set_size_law(d, ratio)).sum()
        assert mean == pytest.approx(d * theory.ordinary_probability(d, ratio), abs=1e-9)


@pytest.mark.parametrize("d", range(2, 9))
def test_up_to_eight_features_a_high_share_leaves_too_little_for_the_others(d: int) -> None:
    """c_1 c_2 = 4 (1 - gamma^2), so the thresholds add up to at least 4 log d/d > 1."""
    for ratio in (0.85, 0.9, 1.0):
        exact = theory.high_probability(d, ratio)
        assert theory.lucky_probability(d, ratio) == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("d", [2, 3, 9, 64, 1000])
def test_there_are_no_lucky_neurons_below_the_smallest_ratio(d: int) -> None:
    edge = theory.smallest_ratio(d)
    assert edge < 1 and theory.thresholds(d, edge)[0] == pytest.approx(1)
    assert theory.lucky_probability(d, edge * 0.999) == 0.0
    assert theory.minimum_width(theory.lucky_probability(d, edge * 0.9), d) == math.inf
    assert theory.lucky_probability(d, 1.0) > 0


def test_known_values() -> None:
    """d = 9: the published number of features; the second by hand, two directions in a plane."""
    assert theory.smallest_ratio(9) == pytest.approx(0.699, abs=5e-4)
    angle = math.asin(math.sqrt(1.001 * math.log(2)))
    assert theory.lucky_probability(2, 1.0) == pytest.approx(1 - 2 / math.pi * angle, rel=1e-12)


def test_the_largest_set_among_very_many_neurons_is_not_lost_in_rounding() -> None:
    """d^2 neurons, d = 8192: 8e-4 of them are ordinary for 8 features, by Bonferroni with
    S_k = C(d, k) P(k given features); summed from the near end the law is 1 up to rounding there.
    """
    d, m = 8192, 8192**2
    low = theory.thresholds(d, 1.0)[1]
    several = [math.comb(d, k) * joint_probability(d, (low,) * k) for k in (8, 9)]
    beyond = [float(theory.set_size_law(d, 1.0)[k:].sum()) for k in range(1, 9)]
    assert several[0] - 8 * several[1] <= beyond[-1] * (1 + 1e-6) <= several[0] * (1 + 2e-6)
    expected = sum(-math.expm1(m * math.log1p(-chance)) for chance in beyond)
    assert theory.expected_largest_set(d, 1.0, m) == pytest.approx(expected, abs=5e-5)


# ------------------------------------------------------------------------------ the whole network


def by_markov_chain(p: float, d: int, m: int) -> float:
    """The number of covered features, neuron by neuron."""
    step = np.zeros((d + 1, d + 1))
    for covered in range(d + 1):
        fresh = (d - covered) * p
        step[covered, covered] = 1 - fresh
        if covered < d:
            step[covered, covered + 1] = fresh
    return float(np.linalg.matrix_power(step, m)[0, d])


@pytest.mark.parametrize(("p", "d"), [(0.02446, 9), (0.5, 2), (0.01, 64), (1 / 12, 12)])
def test_coverage_is_that_of_a_markov_chain(p: float, d: int) -> None:
    width = theory.minimum_width(p, d)
    for m in (1, d, int(width / 2), int(width) - 1, int(width), 2 * int(width)):
        exact = by_markov_chain(p, d, m)
        assert 1 - theory._missed(p, d, m) == pytest.approx(exact, abs=2e-7)
    assert by_markov_chain(p, d, int(width)) >= 0.95 > by_markov_chain(p, d, int(width) - 1)


def test_width_of_two_features_that_share_all_neurons() -> None:
    """Both are covered after m neurons with probability 1 - 2^(1-m)."""
    assert [theory.minimum_width(0.5, 2, c) for c in (0.5, 0.95, 0.999)] == [2, 6, 11]


@settings(deadline=None, max_examples=30)
@given(d=st.integers(2, 100), share=st.floats(1e-6, 1.0), chance=st.floats(0.05, 0.999))
def test_the_width_is_the_smallest_that_will_do(d: int, share: float, chance: float) -> None:
    p = share / d
    m = int(theory.minimum_width(p, d, chance))
    assert theory._missed(p, d, m) <= 1 - chance + 1e-12
    assert m == d or theory._missed(p, d, m - 1) > 1 - chance
    assert theory.minimum_width(p / 2, d, chance) > m or share * m < 2


def test_widths_of_very_rare_neurons() -> None:
    """p m tends to a constant: -log(1 - chance^(1/d)) up to what d features share."""
    for p in (1e-9, 1e-40, 1e-200):
        expected = -math.log(1 - 0.95 ** (1 / 9)) / p
        assert theory.minimum_width(p, 9) == pytest.approx(expected, rel=1e-6)
    assert theory.minimum_width(0.0, 9) == math.inf


def test_the_published_network_is_too_narrow() -> None:
    """24 neurons for 9 features: even balanced, a lucky neuron for each is a rare event."""
    p = theory.lucky_probability(9, 1.0)
    assert theory._missed(p, 9, 24) > 0.999
    assert theory.minimum_width(p, 9) == 209


# --------------------------------------------------------------------- orders and the proof's steps


def test_orders() -> None:
    m, d, ratio, gamma = 24, 9, 0.8, 0.001
    omega_1, omega_2 = theory.omegas(m, d, ratio, gamma)
    assert 9.0**omega_1 == pytest.approx(theory.xi_1_order(m, d, ratio, gamma))
    assert 9.0**omega_2 == pytest.approx(theory.xi_2_order(m, d, ratio, gamma))
    assert theory.xi_1_order(m, d, ratio, 0.0) == pytest.approx(lucky_count_order(m, d, ratio))
    assert theory.set_size_order(d, 1.0, 0.0) == pytest.approx(1)
    assert theory.norm_order(9, 500) == math.log(9) / math.sqrt(500)


def test_the_gaussian_steps_become_exact_for_many_features() -> None:
    steps = theory.proof_steps(8192, 0.9)
    assert steps.high / steps.high_gaussian == pytest.approx(1, abs=0.03)
    assert steps.others / steps.others_gaussian == pytest.approx(1, abs=0.03)
    assert steps.lucky == pytest.approx(steps.high * steps.others)
    few = theory.proof_steps(9, 0.75)
    assert few.high < 0.02 * few.high_gaussian  # a share cannot exceed 1
    assert math.isnan(theory.proof_steps(9, 0.5).others)


def test_the_lower_bound_on_lucky_neurons_is_false_for_many_features_unless_balanced() -> None:
    """|M*_j|/Xi_1 falls faster than a power of d; balanced, about as 1/sqrt(log d)."""
    features = (128, 512, 2048, 8192)

    def over(ratio: float) -> np.ndarray:
        return np.array(
            [theory.lucky_probability(d, ratio) / theory.xi_1_order(1, d, ratio) for d in features]
        )

    falls = np.diff(np.log(over(0.8))) / np.diff(np.log(features))
    assert (np.diff(falls) < 0).all() and falls[-1] < -1.0
    balanced = over(1.0) * np.sqrt(np.log(features))
    assert 0.35 < balanced.min() and balanced.max() < 0.5


# -------------------------------------------------------------------------------------- bad input


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: theory.ordinary_probability(1, 0.5), "d=1: must be a whole number, at least 2"),
    (lambda: theory.lucky_probability(9, 0.0), r"ratio=0.0: eps_min/eps_max must be in \(0, 1\]"),
    (lambda: theory.high_probability(9, 1.5), "ratio=1.5: eps_min/eps_max must be in"),
    (lambda: theory.set_size_law(9, float("nan")), "ratio=nan: eps_min/eps_max must be in"),
    (lambda: theory.lucky_probability(9, 0.5, 1.0), "gamma=1.0: must be at least 0 and below 1"),
    (lambda: theory.smallest_ratio(0), "d=0: must be a whole number"),
    (lambda: theory.expected_largest_set(9, 0.5, 0), "m=0: must be at least 1"),
    (lambda: theory._missed(0.2, 9, 10), r"p_lucky=0.2: must be in \[0, 1/d\]"),
    (lambda: theory._missed(0.1, 9, 0), "m=0: must be at least 1"),
    (lambda: theory.minimum_width(-0.1, 9), "p_lucky=-0.1: must be in"),
    (lambda: theory.minimum_width(0.1, 9, 0.0), "chance=0.0: must lie between 0 and 1"),
    (lambda: theory.minimum_width(0.1, 9, 1e-9), "chance=1e-09: must be at least 1e-6"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_a_value_that_makes_no_sense_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
