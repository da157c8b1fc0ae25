"""The least error by noise alone: against simulation, against limits, against Theorem 1's form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from small_noise import eigenvalues_for

from rarefy.core.errors import UsageError
from rarefy.data.noise_laws import law_of
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

GENERATOR = np.random.default_rng(7)


def zeta(law: str, shape: tuple[int, ...]) -> np.ndarray:
    if law == "gaussian":
        return GENERATOR.standard_normal(shape)
    return GENERATOR.uniform(-np.sqrt(3), np.sqrt(3), shape)


def log_density(law: str, noise: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    """Of noise (n, d) under eigenvalues (classes, d), without what all classes share."""
    scaled = noise[:, None, :] / eigenvalues
    volume = np.log(eigenvalues).sum(axis=1)
    if law == "gaussian":
        return -(scaled**2).sum(axis=2) / 2 - volume
    inside = (np.abs(scaled) <= np.sqrt(3)).all(axis=2)
    return np.where(inside, -volume, -np.inf)


@pytest.mark.parametrize("law", ["gaussian", "uniform"])
@pytest.mark.parametrize(("gamma", "classes"), [(1.0, 3), (1.2, 5), (10.0, 5), (40.0, 2)])
def test_it_is_the_error_of_comparing_densities(law: str, gamma: float, classes: int) -> None:
    """The full log densities of all d coordinates; of equal ones the largest special coordinate."""
    d, n = 2 * classes + 6, 40_000
    table = eigenvalues_for(gamma, d, classes)[0].numpy()[:, classes:]
    labels = GENERATOR.integers(0, classes, n)
    drawn = zeta(law, (n, d - classes))
    noise = drawn * table[labels]
    score = np.round(log_density(law, noise, table), 6) + 1e-9 * np.abs(noise[:, :classes])
    wrong = score.argmax(axis=1) != labels
    ratio = special_ratio(gamma, d - classes)
    own = np.abs(drawn[np.arange(n), labels])  # special axes come first
    for length in (0.0, 0.7, 1.5):
        there = own >= length
        expected = float(least_noise_error(ratio, classes, law, length))
        error = np.sqrt(expected * (1 - expected) / there.sum()) + 1e-4
        assert wrong[there].mean() == pytest.approx(expected, abs=5 * error)


def test_the_special_ratio_is_that_of_the_data() -> None:
    gamma = [1.0, 1.2, 10.0, 1400.0]
    table = eigenvalues_for(torch.tensor(gamma, dtype=torch.float64), 1000, 5)
    np.testing.assert_allclose(special_ratio(gamma, 995), table[:, 0, 5] / 0.5, rtol=1e-12)


@given(gamma=st.floats(1, 2000), rank=st.integers(5, 2000), length=st.floats(0, 4))
def test_it_obeys_theorem_1_with_constant_one_half(gamma: float, rank: int, length: float) -> None:
    ratio = special_ratio(gamma, rank)
    bound = 4 * np.exp(-(length**2) * gamma / 2)
    assert ratio**2 >= gamma
    assert least_noise_error(ratio, 5, "gaussian", length) <= bound * (1 + 1e-9)


@given(ratio=st.floats(1, 100), classes=st.integers(2, 12))
def test_chance_at_ratio_1_and_falling_from_there(ratio: float, classes: int) -> None:
    for law in ("gaussian", "uniform"):
        chance, here, beyond = least_noise_error([1, ratio, ratio * 1.1], classes, law)
        assert chance == pytest.approx(1 - 1 / classes, rel=1e-10)
        assert beyond < here <= chance * (1 + 1e-12)
        further = least_noise_error(ratio, classes, law, [0.0, 0.5, 1.0, 1.5])
        assert (np.diff(further) <= 1e-15).all()


def test_far_into_the_tail_it_is_the_leading_term() -> None:
    """One other class at a time, on a fine grid; 28 and more standard deviations out."""
    ratio, length = 14.0, 2.0
    grid = length + np.linspace(0, 0.2, 400_001)
    values = 4 * special.erfc(ratio * grid / np.sqrt(2)) * np.sqrt(2 / np.pi)
    values *= np.exp(-(grid**2) / 2) / special.erfc(length / np.sqrt(2))
    expected = np.trapezoid(values, grid)
    assert least_noise_error(ratio, 5, "gaussian", length) == pytest.approx(expected, rel=1e-6)
    assert 0 < expected < 1e-150


def test_the_laws_are_those_of_the_data() -> None:
    for law in ("gaussian", "uniform"):
        assert law_of(law).exceedance(1.0) == pytest.approx(
            {"gaussian": 0.31731, "uniform": 1 - 1 / np.sqrt(3)}[law], abs=1e-5
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: special_ratio(0.9, 10), "gamma=0.9: must be at least 1"),
        (lambda: special_ratio(2.0, 1), "rank=1: must be at least 2"),
        (lambda: least_noise_error(0.5, 5), "ratio=0.5: must be finite and at least 1"),
        (lambda: least_noise_error(np.inf, 5), "ratio=inf: must be finite"),
        (lambda: least_noise_error(2.0, 1), "classes=1: must be at least 2"),
        (lambda: least_noise_error(2.0, 5, "cauchy"), "law='cauchy': must be one of gaussian, uni"),
        (lambda: least_noise_error(2.0, 5, length=-1), "length=-1: must be at least 0"),
        (lambda: least_noise_error(2.0, 5, "uniform", 2), "length=2: .* below 1.732"),
    ],
)
def test_wrong_use_is_named(call: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()  # type: ignore[operator]
