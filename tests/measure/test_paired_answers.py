"""Two classifiers on the same samples: closed forms, and how often luck is called a difference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rarefy.core.errors import UsageError
from rarefy.data.longtail.order import class_order, pair_of
from rarefy.measure.estimates import mean_interval
from rarefy.measure.order_pairs import FEWEST, by_pair, over_orders
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


# ---------------------------------------------------------------------------------- pairs of orders


def test_pairs_are_those_that_the_orders_are_drawn_in() -> None:
    for seed in range(6):
        for other in range(6):
            mirrored = class_order(10, seed) == tuple(reversed(class_order(10, other)))
            assert (pair_of(seed) == pair_of(other)) is (mirrored or seed == other)


@pytest.mark.parametrize(
    ("values", "counted", "shown"),
    [
        ([2.0], "1 order", "+2.00"),
        ([2.0, 3.0], "1 pair", "+2.00, +3.00"),
        ([2.0, 3.0, 4.0], "1 pair + 1 order", "+2.00, +3.00, +4.00"),
        ([2.0, np.nan, 4.0], "2 orders", "+2.00, +4.00"),
        ([1.0, 2.0, 3.0, -1.0], "2 pairs", "+1.00, +2.00, +3.00, -1.00"),
        ([1.0, 2.0, 3.0, -1.0, 0.0], "2 pairs + 1 order", "+0.83 [-1.06, +2.73]"),
        ([np.nan], "no order", "-"),
    ],
)
def test_they_are_counted_and_shown(values: list[float], counted: str, shown: str) -> None:
    found = over_orders(values, [seed // 2 for seed in range(len(values))])
    assert (found.counted, found.shown()) == (counted, shown)
    assert np.isfinite(found.interval.low) == (found.interval.n >= FEWEST)


def test_the_interval_is_that_of_the_means_of_pairs() -> None:
    values = [1.0, 3.0, 2.0, 6.0, 0.0, 1.0, 7.0]
    found = over_orders(values, [0, 0, 1, 1, 2, 2, 3])
    assert found.interval == pytest.approx(mean_interval([2.0, 4.0, 0.5, 7.0]))
    # an order that cancels its mirror image says that there is nothing, with certainty
    opposed = over_orders([5.0, -5.0, 4.0, -4.0, 3.0, -3.0], [0, 0, 1, 1, 2, 2])
    assert opposed.interval[:3] == (0.0, 0.0, 0.0) and opposed.pairs == 3


def test_every_point_has_its_own_missing_orders() -> None:
    samples = [[1.0, np.nan], [3.0, 5.0], [7.0, 9.0]]
    found = by_pair(samples, [4, 4, 5])
    np.testing.assert_array_equal(found, [[2.0, np.nan], [np.nan, 5.0], [7.0, 9.0]])


@given(st.lists(st.floats(-5, 5) | st.just(np.nan), min_size=1, max_size=9))
def test_no_order_is_lost_or_counted_twice(values: list[float]) -> None:
    found = over_orders(values, [seed // 2 for seed in range(len(values))])
    assert len(found.values) == found.interval.n + found.pairs
    assert len(found.values) == np.isfinite(values).sum()
    alone = over_orders(values, list(range(len(values))))  # no order is another's mirror image
    assert alone.pairs == 0
    assert alone.interval[0] == pytest.approx(mean_interval(values)[0], nan_ok=True)
