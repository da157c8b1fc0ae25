"""Energies of 002's network against its gradients, and the ranges that curves give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.theory import first_step, keep_window
from rarefy.theory.first_step import FirstStep

STEP = FirstStep(
    classes=10, samples=200, d=200, mu=1.0, sigma=0.5, sigma_0=0.001, lr=0.05, output_scale=1.0
)
EVERY = np.arange(1, STEP.d + 1)
KEEPS = np.array([0.1, 0.2, 0.5, 1.0])


def test_the_lower_end_is_the_first_keep_with_half_of_the_signal() -> None:
    assert keep_window.lower_keep(KEEPS, [1, 4, 7, 8]) == 0.2
    assert keep_window.lower_keep(KEEPS, [1, 3.9, 7, 8]) == 0.5
    assert keep_window.lower_keep(KEEPS, [1, 3.9, 7, 8], share=0.1) == 0.1
    assert math.isnan(keep_window.lower_keep(KEEPS, [1, 1, 0, -0.1]))


def test_the_upper_end_is_where_noise_overtakes_or_the_gain_is_largest() -> None:
    signal, noise = [3, 5, 6, 6], [1, 2, 5, 10]
    assert keep_window.upper_keep(KEEPS, signal, noise) == 0.5
    assert keep_window.upper_keep(KEEPS, signal, noise, "margin") == 0.2
    assert keep_window.upper_keep(KEEPS, [1, 1, 1, 1], [2, 2, 2, 2]) == 0
    assert keep_window.upper_keep(KEEPS, [1, 1, 1, 1], [2, 2, 2, 2], "margin") == 0


positive = st.lists(st.floats(0.01, 100), min_size=len(KEEPS), max_size=len(KEEPS))


@given(signal=positive, noise=positive, scale=st.floats(0.1, 10))
def test_the_unit_does_not_matter_and_the_margin_is_never_above_the_balance(
    signal: list[float], noise: list[float], scale: float
) -> None:
    s, n = np.cumsum(signal), np.cumsum(noise)
    low = keep_window.lower_keep(KEEPS, s)
    assert low == keep_window.lower_keep(KEEPS, 4 * s)
    assert s[list(KEEPS).index(low)] >= s[-1] / 2
    balance = keep_window.upper_keep(KEEPS, s, n)
    assert balance == keep_window.upper_keep(KEEPS, 4 * s, 4 * n)
    assert keep_window.upper_keep(KEEPS, s, n, "margin") <= balance
    assert keep_window.upper_keep(KEEPS, s, n * (1 + scale)) <= balance


def test_energies_have_the_growth_ratio_of_the_first_step_but_for_small_parts() -> None:
    # loss against logits of the own class: 1 - 1/T; signals of other classes: 1/(T - 1) at most
    signal = keep_window.signal_energy(EVERY, STEP)
    noise = keep_window.noise_energy(EVERY, STEP, STEP.samples)
    ratio = signal / noise / first_step.growth_ratio(EVERY, STEP)
    least = 1 - 1 / STEP.classes
    assert (ratio > least - 1e-9).all()
    assert (ratio < least * (1 + 1 / (STEP.classes - 1)) + 1e-9).all()


def test_dense_energies_against_drawn_gradients() -> None:
    rng = np.random.default_rng(5)
    t, n, d = 4, 40_000, 12
    step = FirstStep(
        classes=t, samples=n, d=d, mu=2.0, sigma=0.7, sigma_0=1.0, lr=1.0, output_scale=0.5
    )
    label = rng.integers(t, size=n)
    noise = np.concatenate([np.zeros((n, t)), step.sigma * rng.normal(size=(n, d - t))], axis=1)
    signal = step.mu * np.eye(t, d)[label]
    energies, variances = [], []
    for _ in range(60):
        w = rng.normal(size=d)  # a filter of class 0, at equal logits
        pull = step.output_scale * ((label == 0) - 1 / t)[:, None]
        gradients = pull * (signal * (signal @ w >= 0)[:, None] + noise * (noise @ w >= 0)[:, None])
        energies.append((gradients[:, :t].mean(axis=0) ** 2).sum())
        variances.append(gradients[:, t:].var(axis=0).sum())
    assert np.mean(energies) == pytest.approx(float(keep_window.signal_energy(d, step)), rel=0.25)
    expected = float(keep_window.noise_energy(d, step, 1))
    assert np.mean(variances) == pytest.approx(expected, rel=0.05)


def test_memory_falls_with_the_number_of_samples() -> None:
    one, ten = (keep_window.noise_energy(EVERY, STEP, n) for n in (100, 1000))
    np.testing.assert_allclose(one, 10 * ten)


def test_bad_values_are_named() -> None:
    with pytest.raises(UsageError, match="share=1: must lie between 0 and 1"):
        keep_window.lower_keep(KEEPS, KEEPS, 1)
    with pytest.raises(UsageError, match="upper='middle': must be one of balance, margin"):
        keep_window.upper_keep(KEEPS, KEEPS, KEEPS, "middle")
    with pytest.raises(UsageError, match="must be a list of numbers that rise"):
        keep_window.lower_keep([0.5, 0.5], [1, 2])
    with pytest.raises(UsageError, match="must be one for each of 4 keeps"):
        keep_window.upper_keep(KEEPS, KEEPS, [1, 2])
    with pytest.raises(UsageError, match="samples=0: must be at least 1"):
        keep_window.noise_energy(EVERY, STEP, 0)
