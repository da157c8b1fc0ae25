"""Overlap of regions, and boundaries that are found again when a region was drawn with them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from rarefy.measure.regions import agreement, between, fit_boundaries, overlap

REGIONS = arrays(np.bool_, (4, 5))
SIGMA = np.round(np.arange(0.05, 1.001, 0.05), 2)
KEEP = np.arange(2.0, 201.0, 3)


def falling(sigma: np.ndarray) -> np.ndarray:
    return sigma**-2.0


def rising(sigma: np.ndarray) -> np.ndarray:
    return np.exp(-1 / (2 * sigma**2))


# ------------------------------------------------------------------------------------- two numbers


def test_overlap_is_shared_over_joint_area() -> None:
    first, second = [[1, 1, 0, 0]], [[0, 1, 1, 1]]
    assert overlap(first, second) == 1 / 4
    assert agreement(first, second) == 1 / 4
    assert agreement([1, 0, 0, 0], [0, 0, 0, 0]) == 3 / 4


def test_empty_regions_have_no_overlap_to_speak_of() -> None:
    nothing, something = np.zeros((2, 3), dtype=bool), np.eye(2, 3, dtype=bool)
    assert math.isnan(overlap(nothing, nothing)) and overlap(nothing, something) == 0
    assert agreement(nothing, nothing) == 1
    assert math.isnan(agreement([], []))


@given(REGIONS, REGIONS)
def test_both_are_symmetric_lie_in_0_to_1_and_are_1_for_equals(
    first: np.ndarray, second: np.ndarray
) -> None:
    for measure in (overlap, agreement):
        assert measure(first, second) == measure(second, first) or not (first | second).any()
    assert 0 <= agreement(first, second) <= 1
    assert agreement(first, first) == 1
    assert agreement(first, second) == pytest.approx(agreement(~first, ~second))
    if first.any():
        assert overlap(first, first) == 1 and 0 <= overlap(first, second) <= 1
        if overlap(first, second) == 1:
            assert (first == second).all()


def test_between_has_its_ends_and_a_row_for_every_column_of_the_diagram() -> None:
    y = np.array([1.0, 2.0, 3.0])
    found = between(y, np.array([2.0, 0.0, 3.5]), np.array([3.0, 1.0, 3.0]))
    assert found.tolist() == [[False, True, True], [True, False, False], [False] * 3]


# ----------------------------------------------------------------------------------------- the fit


@pytest.mark.parametrize(("low", "high"), [(120.0, 95.0), (40.0, 20.0), (300.0, 190.0)])
def test_the_factors_a_region_was_drawn_with_are_found_again(low: float, high: float) -> None:
    region = between(KEEP, low * rising(SIGMA), high * falling(SIGMA))
    found = fit_boundaries(region, SIGMA, KEEP, rising, falling)
    # the fine grid's step is 2 %, the diagram's own resolution a few per cent of K
    assert found.lower == pytest.approx(low, rel=0.15)
    assert found.upper == pytest.approx(high, rel=0.15)
    assert found.overlap > 0.97
    again = between(KEEP, found.lower * rising(SIGMA), found.upper * falling(SIGMA))
    assert overlap(again, region) == found.overlap


def test_a_region_of_another_form_is_fitted_worse() -> None:
    region = between(KEEP, 120 * rising(SIGMA), 95 * falling(SIGMA))
    swapped = fit_boundaries(region, SIGMA, KEEP, falling, rising)
    assert swapped.overlap < 0.8


def test_a_few_wrong_cells_hardly_move_the_boundaries() -> None:
    region = between(KEEP, 120 * rising(SIGMA), 95 * falling(SIGMA))
    flipped = np.random.default_rng(0).uniform(size=region.shape) < 0.03
    found = fit_boundaries(region ^ flipped, SIGMA, KEEP, rising, falling)
    assert found.lower == pytest.approx(120, rel=0.25)
    assert found.upper == pytest.approx(95, rel=0.25)
    assert 0.9 < found.overlap < 1


def test_no_region_has_no_boundaries() -> None:
    found = fit_boundaries(np.zeros((len(SIGMA), len(KEEP))), SIGMA, KEEP, rising, falling)
    assert all(math.isnan(value) for value in (found.lower, found.upper, found.overlap))


def test_an_edge_that_bounds_nothing_gets_the_smallest_factor_that_fits() -> None:
    everything = np.ones((len(SIGMA), len(KEEP)), dtype=bool)
    found = fit_boundaries(everything, SIGMA, KEEP, rising, falling)
    assert found.overlap == 1
    assert (found.lower * rising(SIGMA) < KEEP[0] / 10).all()
    assert KEEP[-1] <= (found.upper * falling(SIGMA)).min() < 1.1 * KEEP[-1]
    below = between(KEEP, np.zeros(len(SIGMA)), 30 * falling(SIGMA))
    open_below = fit_boundaries(below, SIGMA, KEEP, rising, falling)
    assert (open_below.lower * rising(SIGMA) < KEEP[0] / 10).all()
    assert open_below.upper == pytest.approx(30, rel=0.15) and open_below.overlap > 0.97
