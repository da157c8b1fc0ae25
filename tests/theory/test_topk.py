"""Formulas of 002 against each other, their exponents, and what the paper states."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rarefy.core.errors import UsageError
from rarefy.theory import topk as theory

FIGURE: dict[str, Any] = {
    "classes": 10,
    "filters": 20,
    "samples": 200,
    "d": 200,
    "mu": 1.0,
    "sigma": 1.0,
    "sigma_0": 0.01,
    "lr": 0.05,
    "output_scale": 1.0,
    "horizon": 5000,
}
many = st.integers(16, 10**6)
positive = st.floats(0.05, 20.0)


def exponent(of: Callable[[float], Any], at: float) -> float:
    return math.log2(of(2 * at) / of(at))


# ------------------------------------------------------------------------------------- two regimes


@given(positive, positive, st.integers(2, 5000))
def test_signal_over_noise_per_sample(mu: float, sigma: float, d: int) -> None:
    ratio = theory.snr(mu, sigma, d)
    assert ratio**2 * sigma**2 * d == pytest.approx(mu**2)


@given(positive, st.integers(2, 100), many)
def test_the_coefficients_ratio_and_its_inverse(ratio: float, classes: int, samples: int) -> None:
    up = theory.coefficient_ratio_order(ratio, classes, samples)
    down = theory.noise_coefficient_order(ratio, classes, samples)
    assert up * down == pytest.approx(1)
    # at the threshold of Theorem 4.2 it is T sqrt(n), at that of Theorem 4.3 it is 1/(T n)
    high = theory.signal_threshold_order(classes, float(samples))
    low = theory.noise_threshold_order(float(samples))
    at_high = theory.coefficient_ratio_order(high, classes, samples)
    assert at_high == pytest.approx(classes * math.sqrt(samples))
    at_low = theory.coefficient_ratio_order(low, classes, samples)
    assert at_low == pytest.approx(1 / (classes * samples))


# ---------------------------------------------------------------------------------- length of stage


def test_stage_lengths_scale_as_printed() -> None:
    """Lemmas F.1 and H.1: m T/(eta mu^2) and m n/(eta sigma^2 d), with output_scale = 1/m."""
    m = 20
    assert theory.signal_stage_order(10, 2.0, 0.05, 1 / m) == pytest.approx(m * 10 / (0.05 * 4))
    assert theory.noise_stage_order(200, 0.5, 400, 0.05, 1 / m) == pytest.approx(
        m * 200 / (0.05 * 0.25 * 400)
    )
    assert exponent(lambda x: theory.signal_stage_order(10, x, 0.05, 1), 1.0) == pytest.approx(-2)
    assert exponent(lambda x: theory.noise_stage_order(9, x, 40, 0.05, 1), 1.0) == pytest.approx(-2)


@given(positive, positive, st.integers(2, 50), many, st.integers(10, 1000))
def test_the_stages_differ_by_the_coefficients_ratio(
    mu: float, sigma: float, classes: int, samples: int, d: int
) -> None:
    """App. F.1: m T/(eta mu^2) = m n/(eta sigma^2 d) rho-tilde."""
    signal = theory.signal_stage_order(classes, mu, 0.1, 1.0)
    noise = theory.noise_stage_order(samples, sigma, d, 0.1, 1.0)
    inverse = theory.noise_coefficient_order(theory.snr(mu, sigma, d), classes, samples)
    assert signal == pytest.approx(noise * inverse)


def test_a_logit_gains_what_m_weights_give_it() -> None:
    assert theory.logit_gain(20, 1 / 20) == pytest.approx(1 / 20)
    assert theory.logit_gain(20, 1.0) == 20


# ---------------------------------------------------------------------------------------- test loss


def test_losses() -> None:
    assert theory.signal_test_loss_ceiling(0.01, 10, 200) == pytest.approx(
        0.8 * math.exp(4), rel=1e-12
    )
    assert theory.signal_test_loss_ceiling(0.0, 10, 2) == pytest.approx(math.exp(-4))
    assert theory.noise_test_loss_floor(10) == pytest.approx(0.5 * math.log(1 + 9 / math.e))
    assert theory.chance_loss(10) == math.log(10)
    for classes in range(2, 100):  # a floor below chance, as it must be
        assert theory.noise_test_loss_floor(classes) < theory.chance_loss(classes)


# ---------------------------------------------------------------------------------------- K window


@given(sigma=st.floats(0.05, 2.0), step=st.floats(0.01, 1.0), power=st.sampled_from([1, 2]))
def test_the_window_narrows_as_the_noise_grows(sigma: float, step: float, power: int) -> None:
    def lower(at: float) -> float:
        return float(theory.window_lower_order(200, 0.7, at, power=power))

    assert lower(sigma + step) >= lower(sigma)
    upper = theory.window_upper_order(10, 200, 0.7, sigma)
    assert theory.window_upper_order(10, 200, 0.7, sigma + step) < upper
    assert theory.too_few(200, 0.7, sigma + step) >= theory.too_few(200, 0.7, sigma)


def test_the_two_exponents_agree_at_mu_1_only() -> None:
    one, two = (theory.window_lower_order(200, 1.0, 0.5, power=p) for p in (1, 2))
    assert one == two
    weak = [theory.window_lower_order(200, 0.5, 0.5, power=p, deviation=0) for p in (1, 2)]
    assert weak[0] == pytest.approx(200 * math.exp(-1)) and weak[1] == pytest.approx(
        200 * math.exp(-0.5)
    )
    with pytest.raises(UsageError, match="power=3: must be 1"):
        theory.window_lower_order(200, 1.0, 0.5, power=3)


def test_pieces_of_the_window() -> None:
    assert theory.window_lower_order(200, 1.0, 1e-3, delta=0.1, deviation=2.0) == pytest.approx(
        2 * math.sqrt(200 * math.log(10))
    )
    assert theory.window_lower_order(200, 1.0, 1e6, constant=0.6, deviation=0) == pytest.approx(120)
    upper = theory.window_upper_order(10, 200, 1.0, 0.5, constant=2.0)
    assert upper == pytest.approx(2 * math.sqrt(200) / 10 / 0.25)
    assert exponent(lambda n: theory.window_upper_order(10, n, 1.0, 0.5), 64) == pytest.approx(0.5)
    assert exponent(lambda s: theory.window_upper_order(10, 9, 1.0, s), 0.5) == pytest.approx(-2)
    with pytest.raises(UsageError, match="delta=1.0: must lie between 0 and 1"):
        theory.too_few(200, 1.0, 1.0, delta=1.0)


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 2.0])
def test_theorem_4_5_counts_no_more_than_exceed_mu(sigma: float) -> None:
    """Its number is a lower bound on the expected count of |N(0, sigma^2)| >= mu, that of Theorem
    4.4 (with Theta = 2) an upper one."""
    exact = 200 * 2 * stats.norm.sf(1 / sigma)
    assert theory.too_few(200, 1.0, sigma, deviation=0) <= exact + 1e-12
    bound = theory.window_lower_order(200, 1.0, sigma, power=2, constant=2.0, deviation=0)
    assert exact <= bound


def test_the_published_curves() -> None:
    assert theory.figure_lower(1.0) == pytest.approx(120 * math.exp(-0.5))
    assert theory.figure_upper(0.5) == pytest.approx(380)
    sigma = np.linspace(0.01, 1.0, 100)
    assert (theory.figure_lower(sigma) < theory.figure_upper(sigma)).all()
    # the same curves as Theorem 4.4, with free constants of 0.6 and 67
    np.testing.assert_allclose(
        theory.figure_lower(sigma),
        theory.window_lower_order(200, 1.0, sigma, constant=0.6, deviation=0),
    )
    constant = 95 * 10 / math.sqrt(200)
    np.testing.assert_allclose(
        theory.figure_upper(sigma), theory.window_upper_order(10, 200, 1.0, sigma, constant)
    )


@pytest.mark.parametrize("make", [np.array, lambda v: torch.tensor(v, dtype=torch.float64)])
def test_arrays_and_tensors_broadcast(make: Callable[[list[Any]], Any]) -> None:
    mu, sigma = make([[0.5], [2.0]]), make([0.1, 0.5, 1.0])
    for of in (
        lambda a, b: theory.snr(a, b, 200),
        lambda a, b: theory.window_lower_order(200, a, b, power=2),
        lambda a, b: theory.window_upper_order(10, 200, a, b),
        lambda a, b: theory.too_few(200, a, b),
        lambda a, b: theory.coefficient_ratio_order(a, 10, 200) + theory.figure_lower(b),
        lambda a, b: theory.signal_stage_order(10, a, 0.1, 1) + theory.figure_upper(b),
        lambda a, b: theory.signal_test_loss_ceiling(a, 10, 2) * b,
    ):
        found = of(mu, sigma)
        assert tuple(found.shape) == (2, 3) and isinstance(found, type(mu))
        for row in range(2):
            for column in range(3):
                alone = of(float(mu[row, 0]), float(sigma[column]))
                assert float(found[row, column]) == pytest.approx(alone, rel=1e-12)


# -------------------------------------------------------------------------------------- assumptions


def test_the_figure_is_far_outside_condition_4_1() -> None:
    wide, inverse, start, rate = theory.condition_4_1(**FIGURE)
    alpha = 4 * math.log(5000)
    assert wide.limit == pytest.approx(
        10 + 512 * 10 * 200**2 * alpha**2 * math.log(4 * 200**2 / 0.1)
    )
    assert not wide.holds and 1e10 < wide.ratio < 1e11
    assert inverse.holds and inverse.limit == 1
    assert not start.holds and start.ratio > 1e5
    assert rate.holds and rate.limit == pytest.approx(10)
    assert [c.sense for c in (wide, inverse, start, rate)] == [">=", ">=", "<=", "<="]


def test_condition_4_1_can_hold() -> None:
    case = FIGURE | {"classes": 2, "filters": 4, "samples": 2, "d": 10**8, "sigma_0": 1e-8}
    assert all(each.holds for each in theory.condition_4_1(**case))
    for change in ({"d": 10**3}, {"sigma_0": 1.0}, {"lr": 3.0}, {"sigma": 1e-5}):
        assert not all(each.holds for each in theory.condition_4_1(**case | change))


def test_condition_4_1_knows_the_scale_and_the_constants() -> None:
    mean = theory.condition_4_1(**FIGURE | {"output_scale": 1 / 20})
    assert mean[3].limit == pytest.approx(20 * 10)  # m T/mu^2
    loose = theory.condition_4_1(**FIGURE | {"constant": 0.5})
    assert loose[3].limit == pytest.approx(5)
    silent = theory.condition_4_1(**FIGURE | {"sigma": 0.0})
    assert silent[1].limit == math.inf and math.isfinite(silent[2].limit)
    assert theory.condition_4_1(**FIGURE | {"mu": 1e3})[2].limit == pytest.approx(
        theory.condition_4_1(**FIGURE | {"mu": 1e2})[2].limit / 10
    )


def test_condition_4_1_names_bad_values() -> None:
    with pytest.raises(UsageError, match="delta=0.0: must lie between 0 and 1"):
        theory.condition_4_1(**FIGURE | {"delta": 0.0})
    with pytest.raises(UsageError, match="horizon=1: must be more than 1 step"):
        theory.condition_4_1(**FIGURE | {"horizon": 1})
