"""What 000 predicts for pruning: how the formulas hang together, and against direct iteration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.theory import contrastive_pruning as theory

LR = 0.5
share = st.floats(0.01, 1.0)
constants = st.floats(1e-3, 2.0)


@given(share, share, constants, st.integers(3, 1000))
def test_the_others_gain_eps_over_d_of_what_the_rare_feature_gains(
    eps: float, alpha: float, constant: float, d: int
) -> None:
    rare = theory.minority_rate_order(eps, alpha, LR, constant)
    others = theory.other_rate_order(eps, alpha, LR, constant, d)
    assert rare == pytest.approx(LR * constant * alpha * eps * eps)
    assert others / rare == pytest.approx(eps / d)


@given(share, share, share, constants)
def test_the_elapsed_time_is_what_the_rate_needs_to_make_up_for_the_imbalance(
    ratio: float, eps: float, alpha: float, constant: float
) -> None:
    rate = theory.minority_rate_order(eps, alpha, LR, constant)
    time = theory.elapsed_time(ratio, eps, alpha, LR, constant)
    assert time * rate == pytest.approx(1 / ratio - 1)
    # a weight of eps/eps_max that gains the same amount a step is then 1
    assert ratio + time * rate * ratio == pytest.approx(1.0)


def test_no_imbalance_takes_no_time_and_more_of_it_longer() -> None:
    assert theory.elapsed_time(1.0, 0.3, 0.1, LR, 0.5) == 0.0
    times = theory.elapsed_time(np.array([0.1, 0.2, 0.5, 0.9]), 0.3, 0.1, LR, 0.5)
    assert (np.diff(times) < 0).all()


def test_monotone_in_alpha() -> None:
    alpha = np.linspace(0.01, 0.99, 30)
    for rates in (
        theory.minority_rate_order(0.3, alpha, LR, 0.4),
        theory.other_rate_order(0.3, alpha, LR, 0.4, 9),
    ):
        assert (np.diff(rates) > 0).all()
        np.testing.assert_allclose(rates / alpha, rates[0] / alpha[0])  # and in proportion to it
    assert (np.diff(theory.elapsed_time(0.3, 0.3, alpha, LR, 0.4)) < 0).all()


def test_without_pruning_nothing_is_added() -> None:
    assert theory.minority_rate_order(0.3, 0.0, LR, 0.4) == 0
    assert theory.other_rate_order(0.3, 0.0, LR, 0.4, 9) == 0


def test_exponents_in_eps_and_d() -> None:
    def exponent(of: Callable[[float], float], at: float) -> float:
        return math.log(of(2 * at) / of(at), 2)

    assert exponent(lambda e: theory.minority_rate_order(e, 0.1, LR, 1.0), 0.2) == pytest.approx(2)
    assert exponent(lambda e: theory.other_rate_order(e, 0.1, LR, 1.0, 9), 0.2) == pytest.approx(3)
    # C_z log log d / d is the constant: it brings one power of d to both
    assert exponent(
        lambda d: theory.other_rate_order(0.2, 0.1, LR, 1 / d, int(d)), 16
    ) == pytest.approx(-2)


@pytest.mark.parametrize("make", [np.array, lambda v: torch.tensor(v, dtype=torch.float64)])
def test_arrays_and_tensors_broadcast(make: Callable[[list[Any]], Any]) -> None:
    eps, alpha = make([[0.1], [0.4]]), make([0.05, 0.1, 0.3])
    for of in (
        lambda e, a: theory.minority_rate_order(e, a, LR, 0.4),
        lambda e, a: theory.other_rate_order(e, a, LR, 0.4, 9),
        lambda e, a: theory.elapsed_time(e, e, a, LR, 0.4),
    ):
        found = of(eps, alpha)
        assert tuple(found.shape) == (2, 3)
        for row in range(2):
            for column in range(3):
                alone = of(float(eps[row, 0]), float(alpha[column]))
                assert float(found[row, column]) == pytest.approx(alone, rel=1e-12)
