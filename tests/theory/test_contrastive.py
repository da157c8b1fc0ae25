"""Formulas of 000 and 001 against simulation, direct iteration and what the papers state."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_contrastive import population_gradient, small

from rarefy.measure.alignment import growth_factor, outside, projections
from rarefy.measure.contrastive_data import latent_moment
from rarefy.nets.brelu_transformer import Attention
from rarefy.theory import contrastive as theory

RUNS, BATCH, BATCHES = 40, 8, 400


@pytest.mark.quick("one-3-1.0-2.0-2.0")
@pytest.mark.parametrize(
    ("spread", "tokens", "scale", "tau", "factor"),
    [
        ("all", 2, 1.0, 1.0, 1.0),
        ("one", 2, 0.0, 2.0, 1.0),
        ("one", 3, 1.0, 2.0, 2.0),
        ("subset", 2, 1.0, 0.5, 1.0),
    ],
)
def test_stage_1_growth_is_that_of_the_population_gradient(
    spread: str, tokens: int, scale: float, tau: float, factor: float
) -> None:
    """Small weights, so flat logits; the moment from the data, nothing fitted; within 2 %."""
    lr, decay = 0.1, 0.01
    case = small(
        name="growth",
        runs=RUNS,
        neurons=12,
        eps=(1.0, 0.5),
        sigma=0.05,
        tokens=tokens,
        spread=spread,
        sigma_0=1e-4,
        tau=tau,
        factor=factor,
        attention=Attention(scale=scale),
    )
    gradient, _ = population_gradient(
        case.problem, case.parameters, case.data, case.draws, BATCH, BATCHES
    )
    moved = (1 - lr * decay) * case.weights - lr * gradient
    atoms = case.data.dictionary
    found = growth_factor(projections(case.weights, atoms), projections(moved, atoms), dim=1).mean(
        dim=0
    )
    moments = latent_moment(
        case.data, case.problem.attention, case.draws.spawn("moment"), BATCH * BATCHES
    )
    predicted = theory.stage_1_growth(moments.mean(dim=0), lr, tau, BATCH, factor, decay)
    rate, expected = found - 1 + lr * decay, predicted - 1 + lr * decay
    assert (rate / expected - 1).abs().max() < 0.02
    # what lies outside the feature space only decays, (8)
    rest = growth_factor(outside(case.weights, atoms), outside(moved, atoms), dim=(1, 2))
    error = float(rest.std()) / math.sqrt(RUNS)
    assert abs(float(rest.mean()) - theory.outside_decay(lr, decay)) < 4 * error


def test_growth_is_linear_in_the_frequency_and_has_the_stated_pieces() -> None:
    eps = np.array([0.1, 0.5, 1.0])
    moment = theory.uniform_attention_moment(eps, 0.3, 2, "all")
    growth = theory.stage_1_growth(moment, lr=0.5, tau=2.0, batch=64, factor=1.0, decay=0.01)
    expected = 1 - 0.5 * 0.01 + 0.5 / 2 * (63 / 64) * 0.3 * 4 * eps
    np.testing.assert_allclose(growth, expected, rtol=1e-14)
    # tau times the loss: the temperature drops out
    times = theory.stage_1_growth(moment, lr=0.5, tau=2.0, batch=64, factor=2.0)
    np.testing.assert_allclose(times, theory.stage_1_growth(moment, 0.5, 1.0, 64), rtol=1e-14)


@pytest.mark.parametrize("tokens", [1, 2, 3, 6])
def test_moments_of_plain_averaging_are_counts_of_tokens(tokens: int) -> None:
    """E[K]^2 with K the number of tokens that show a feature, by enumeration of the subsets."""
    subsets = [
        subset
        for size in range(1, tokens + 1)
        for subset in itertools.combinations(range(tokens), size)
    ]
    mean_size = sum(map(len, subsets)) / len(subsets)
    expected = {"one": 1.0, "all": float(tokens), "subset": mean_size}
    for spread, shown in expected.items():
        found = theory.uniform_attention_moment(0.5, 0.3, tokens, spread)
        assert found == pytest.approx(0.5 * 0.3 * shown**2)


def test_the_convergence_window_at_d_9() -> None:
    assert theory.t3(9, 0.05) == pytest.approx(9**1.01 / 0.05) == pytest.approx(184.0, abs=0.1)
    assert theory.t4(9, 0.05) == pytest.approx(1584.8, abs=0.1)
    assert theory.t4(9, 0.5) == pytest.approx(158.48, abs=0.01)
    assert theory.t4(9, 0.5) / theory.t3(9, 0.5) == pytest.approx(9**0.98)


# ---------------------------------------------------------------------------- sets and coefficients


def test_constants_of_the_sets() -> None:
    assert theory.set_constants(1.0, 0.001) == pytest.approx((2.002, 1.998))
    assert theory.set_constants(0.5, 0.001) == pytest.approx((8.008, 0.4995))
    c1, c2 = theory.set_constants(torch.tensor([0.5, 1.0]), gamma=0.0)
    assert c1.tolist() == [8.0, 2.0] and c2.tolist() == [0.5, 2.0]


def test_the_bias_at_t1() -> None:
    assert theory.bias_at_t1(2.0, 9) == pytest.approx(2 * math.sqrt(2 * math.log(9) / 9))


@settings(deadline=None, max_examples=25)
@given(low=st.floats(0.2, 0.99), step=st.floats(0.005, 0.5), d=st.integers(3, 300))
def test_balance_moves_every_order_as_the_paper_says(low: float, step: float, d: int) -> None:
    high = min(1.0, low + step)
    # (9), Theorem 3.1: more pure neurons
    assert theory.lucky_count_order(100, d, low) < theory.lucky_count_order(100, d, high)
    # (14): fewer features a neuron
    assert theory.set_size_order(d, low) > theory.set_size_order(d, high)
    # (13), (89): more weight and energy on a feature
    assert theory.coefficient_scale(low) < theory.coefficient_scale(high)
    assert theory.feature_energy_scale(low) < theory.feature_energy_scale(high)
    assert theory.lucky_floor(low) < theory.lucky_floor(high)


def test_orders_at_known_points() -> None:
    assert theory.lucky_count_order(900, 9, 1.0) == pytest.approx(100)  # m/d when balanced
    assert theory.lucky_count_order(900, 9, 0.5) == pytest.approx(900 * 9.0**-4)
    assert theory.set_size_order(9, 1.0) == pytest.approx(1)
    assert theory.set_size_order(64, 0.5) == pytest.approx(64**0.75)
    assert theory.lucky_floor(0.5) == pytest.approx(1.0)
    assert theory.feature_energy_scale(0.5) == 0.25 and theory.coefficient_scale(0.5) == 0.5


def test_the_range_of_a_coefficient() -> None:
    """(13) with Xi_2 = d^(C_m - ratio^2) and m = d^C_m."""
    low, high = theory.coefficient_range(0.5, tau=2.0, m=81, d=9, ratio=0.5)
    assert high == pytest.approx(0.5 * 2.0)
    assert low == pytest.approx(0.5 * 2.0 / 9 ** (2 - 0.25))
