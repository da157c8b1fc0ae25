"""Orders of the classes: drawn, mirrored in pairs, or that of the labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.data.longtail.order import class_order, rank_classes


@given(st.integers(1, 300), st.integers(0, 10_000))
def test_seeds_come_in_mirrored_pairs(classes: int, pair: int) -> None:
    order = class_order(classes, 2 * pair)
    assert sorted(order) == list(range(classes))
    assert class_order(classes, 2 * pair + 1) == order[::-1]
    assert class_order(classes, 2 * pair) == order


def test_no_seed_is_the_order_of_the_labels() -> None:
    assert class_order(4, None) == class_order(4, -1) == (0, 1, 2, 3)


def test_every_class_is_at_every_rank_equally_often() -> None:
    pairs = 2000
    orders = np.array([class_order(5, 2 * pair) for pair in range(pairs)])
    assert len({tuple(order) for order in orders}) == 120
    for rank in range(5):
        shares = np.bincount(orders[:, rank], minlength=5) / pairs
        # five standard deviations of a share of 1/5
        assert np.abs(shares - 0.2).max() < 5 * np.sqrt(0.16 / pairs)


def test_orders_stay_what_they_are() -> None:
    """Results are filed under seeds: one that gave another order would belie them."""
    assert class_order(10, 0) == (2, 4, 7, 3, 6, 1, 9, 8, 5, 0)
    assert class_order(10, 2) == (1, 5, 6, 8, 4, 7, 0, 9, 3, 2)


def test_counts_by_label_are_ranked() -> None:
    assert rank_classes([3, 0, 5, 3]) == ((5, 3, 3), (2, 0, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: class_order(0, 1), "classes=0: must be a whole number, at least 1"),
        (lambda: class_order(3, -2), "seed=-2: must be a whole number, at least -1"),
        (lambda: class_order(3, 1.5), "seed=1.5: must be a whole number"),  # type: ignore[arg-type]
        (lambda: rank_classes([0, 0]), "counts=(): at least one class is needed"),
    ],
)
def test_wrong_values_are_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).startswith(message)
