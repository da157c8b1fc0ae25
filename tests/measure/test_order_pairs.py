"""Orders of the classes that are mirror images of each other count as one sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.data.longtail.order import class_order, pair_of
from rarefy.measure.estimates import mean_interval
from rarefy.measure.order_pairs import FEWEST, by_pair, over_orders


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
