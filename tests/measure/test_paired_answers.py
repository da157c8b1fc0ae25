"""Two classifiers on the same samples: closed forms, and how often luck is called a difference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rarefy.core.errors import UsageError
from rarefy.measure.paired_answers import paired_difference


def test_it_is_the_difference_of_balanced_accuracies() -> None:
    first, second, labels = [1, 1, 1, 0, 1], [1, 0, 0, 0, 1], [0, 0, 1, 1, 1]
    found = paired_difference(first, second, labels)
    assert found.mean == pytest.approx((1 + 2 / 3) / 2 - (1 / 2 + 1 / 3) / 2)
    assert (found.samples, found.differing) == (5, 2)
    assert found.error == pytest.approx(np.hypot(1 / 4, 1 / 6))


@given(st.integers(0, 10_000))
def test_samples_that_both_get_right_or_wrong_say_nothing_and_signs_turn(seed: int) -> None:
    draw = np.random.default_rng(seed)
    first, second = draw.integers(0, 2, (2, 40))
    labels = np.arange(40) % 3
    found, turned = (paired_difference(*two, labels) for two in ((first, second), (second, first)))
    assert turned.mean == pytest.approx(-found.mean) and turned.error == pytest.approx(found.error)
    assert not (found.above_zero(0.3) and turned.above_zero(0.3))
    same = first == second
    flipped = np.where(same, 1 - first, first), np.where(same, 1 - second, second)
    again = paired_difference(*flipped, labels)
    assert (again.mean, again.error) == pytest.approx((found.mean, found.error))


def test_with_one_class_it_is_mcnemars_test() -> None:
    """By its exact form: 60 of 100 samples that differ favour the first."""
    first = np.r_[np.ones(60), np.zeros(40), np.ones(200)]
    second = np.r_[np.zeros(60), np.ones(40), np.ones(200)]
    found = paired_difference(first, second, np.zeros(300))
    exact = binomtest(60, 100, 0.5, alternative="greater").pvalue
    assert found.differing == 100
    assert found.above_zero(exact + 0.01) and not found.above_zero(exact - 0.01)


@pytest.mark.quick("counts0")
@pytest.mark.parametrize("counts", [(70, 70), (200, 50, 20, 10), (15,) * 10])
def test_luck_is_called_a_difference_no_more_often_than_said(counts: tuple[int, ...]) -> None:
    draw, labels, chance = np.random.default_rng(0), np.repeat(np.arange(len(counts)), counts), 0.05
    hard = draw.normal(size=len(labels))  # (some images are easy for both)
    runs = 4000
    right = hard + draw.normal(size=(2, runs, len(labels))) > 0
    called = [paired_difference(*two, labels).above_zero(chance) for two in zip(*right)]  # noqa: B905
    assert np.mean(called) <= chance + 3 * np.sqrt(chance * (1 - chance) / runs)
    assert np.mean(called) >= chance / 3  # it is no rule that never speaks


def test_bad_answers_and_none_that_differ() -> None:
    same = paired_difference([1, 0], [1, 0], [0, 1])
    assert (same.mean, same.error) == (0, 0) and not same.above_zero(0.5)
    with pytest.raises(UsageError, match=r"answers='\(2,\), \(1,\), \(2,\)': must be one per sam"):
        paired_difference([1, 0], [1], [0, 1])
    with pytest.raises(UsageError, match="at least one"):
        paired_difference([], [], [])
