"""From errors to separations, and the exponents read from them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rarefy.measure.separation import (
    crossing,
    error_of,
    exponents,
    mean_error,
    measured_cells,
    separation,
)


def test_a_separation_gives_the_error_of_normal_scores() -> None:
    distance = np.array([0.0, 0.4, 1.3, 3.0, 5.5])
    np.testing.assert_allclose(
        error_of(distance, 2), stats.norm.sf(distance / np.sqrt(2)), rtol=1e-6
    )
    assert error_of(0.0, 5) == pytest.approx(0.8)
    scores = np.random.default_rng(0).normal(size=(200_000, 5))
    scores[:, 0] += 1.7
    wrong = (scores.argmax(axis=1) != 0).mean()
    assert error_of(1.7, 5) == pytest.approx(wrong, abs=0.005)


@pytest.mark.parametrize("classes", [2, 5, 10])
def test_separation_is_the_inverse(classes: int) -> None:
    distance = np.linspace(0.05, 8, 40)
    np.testing.assert_allclose(
        separation(error_of(distance, classes), classes), distance, rtol=1e-6
    )
    assert separation(0.99, classes) == 0  # worse than chance
    assert np.isnan(separation(0.0, classes))


def test_cells_are_cut_in_x_at_the_first_that_cannot_be_counted() -> None:
    ratio = np.array([[0.5, 2.0, 8.0, 32.0], [1.0, 4.0, 16.0, 64.0]])
    error = np.array([[0.5, 0.2, 0.01, 0.002], [0.4, 0.1, 0.0001, 0.0]])
    found = measured_cells(np.stack([error, error]), ratio, test_samples=10_000)
    # x = 16 has two errors in two seeds; x = 32 could be counted but lies beyond
    assert found.tolist() == [[False, True, True, False], [True, True, False, False]]
    assert measured_cells(np.zeros((2, 2, 4)), ratio, 100).sum() == 0


def test_no_error_in_a_resample_counts_as_half_of_one() -> None:
    error = np.array([[0.0, 0.1, np.nan], [0.0, 0.3, np.nan]])
    found = mean_error(error, 100)
    np.testing.assert_allclose(found[:2], [0.5 / 200, 0.2])
    assert np.isnan(found[2])


SIZE, STRENGTH = np.array([10.0, 40.0, 160.0]), np.linspace(0.2, 3.4, 17)
LOG_SIZE = np.broadcast_to(np.log(SIZE)[:, None], (3, 17))
LOG_STRENGTH = np.broadcast_to(np.log(STRENGTH), (3, 17))


def test_exponents_are_those_of_a_law_made_up() -> None:
    ratio = SIZE[:, None] ** 0.8 * STRENGTH**3.0 / 20
    error = np.broadcast_to(error_of(np.sqrt(ratio), 5), (4, 3, 17))
    cells = (ratio > 1) & (ratio < 30)
    found = exponents(error, cells, "separation", 5, 10**9, LOG_SIZE, LOG_STRENGTH)
    np.testing.assert_allclose([e.mean for e in found], [0.8, 3.0], rtol=1e-3)
    plain = exponents(np.exp(-np.stack([ratio] * 4)), cells, "log", 5, 10**15, np.log(ratio))[0]
    assert plain.mean == pytest.approx(1.0)
    # one size: nothing tells |S| from the intercept
    one = np.zeros_like(cells)
    one[1] = cells[1]
    assert np.isnan(exponents(error, one, "separation", 5, 10**9, LOG_SIZE, LOG_STRENGTH)[0].mean)


def test_a_factor_before_the_exponential_makes_log_errors_look_sublinear() -> None:
    """Why there are two readings: the exact law of the bound has an exponent of 1 in one only."""
    ratio = np.geomspace(1, 40, 30)[None]
    error = np.broadcast_to(error_of(np.sqrt(1.5 * ratio), 5), (3, 1, 30))
    cells = np.ones((1, 30), dtype=bool)
    plain, alike = (
        exponents(error, cells, kind, 5, 10**12, np.log(ratio))[0].mean
        for kind in ("log", "separation")
    )
    assert alike == pytest.approx(1, abs=1e-3) and plain < 0.9


def test_a_crossing_is_found_between_strengths() -> None:
    strength = np.array([0.5, 1.0, 1.5, 2.0])
    error = error_of(1.1 * strength**2, 5)
    found = crossing(strength, np.stack([error, np.zeros(4), np.full(4, 0.5)]), 0.2, 5)
    expected = float(np.sqrt(separation(0.2, 5) / 1.1))
    np.testing.assert_allclose(found, [expected, np.nan, np.nan], rtol=1e-6)
