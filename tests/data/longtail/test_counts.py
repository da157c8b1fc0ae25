"""Counts by rank: the public sets' totals, and what holds for all parameters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.data.longtail.counts import (
    balanced,
    exponential,
    given,
    pareto,
    step,
)
from rarefy.data.longtail.order import class_order, rank_classes

sizes = st.integers(1, 6000)
imbalances = st.one_of(st.floats(1, 1000), st.integers(1, 1000))
numbers = st.integers(1, 120)


@pytest.mark.parametrize(
    ("head", "classes", "total", "tail", "even"),
    [
        (5000, 10, 12_406, 50, 1240),
        (500, 100, 10_847, 5, 108),
        # SDCLR's files, without the images kept for validation
        (4500, 10, 11_165, 45, 1116),
        (450, 100, 9_754, 4, 97),
    ],
)
def test_both_public_definitions_of_cifar_lt(
    head: int, classes: int, total: int, tail: int, even: int
) -> None:
    counts = exponential(head, 100, classes)
    assert (sum(counts), counts[0], counts[-1], len(counts)) == (total, head, tail, classes)
    assert balanced(total, classes) == (even,) * classes


@drawn(sizes, imbalances, numbers, st.floats(0.1, 50))
def test_every_shape_falls_from_head_to_tail(
    n_max: int, rho: float, classes: int, power: float
) -> None:
    shapes = (
        exponential(n_max, rho, classes),
        step(n_max, rho, classes),
        pareto(n_max, rho, classes, power),
    )
    for counts in shapes:
        assert len(counts) == classes and counts[0] == n_max
        assert given(counts) == counts
        if classes > 1:  # rounded down; one less where n_max / rho is whole but not as a float
            assert max(1, int(n_max / rho) - 1) <= counts[-1] <= max(1, n_max / rho * (1 + 1e-9))


@drawn(sizes, numbers)
def test_an_imbalance_of_one_is_balanced(n_max: int, classes: int) -> None:
    even = (n_max,) * classes
    assert exponential(n_max, 1, classes) == step(n_max, 1, classes) == even
    assert pareto(n_max, 1, classes) == balanced(n_max * classes, classes) == even


@pytest.mark.parametrize(
    ("share", "classes", "tails"),
    [(0.5, 10, 5), (0.5, 5, 2), (0.3, 10, 3), (0.29, 100, 29), (0.07, 50, 3), (0.01, 10, 1)]
    + [(0.99, 10, 9), (0.5, 2, 1), (0.5, 3, 1), (0.7, 10, 7), (0.5, 1, 0)],
)
def test_the_share_of_a_step(share: float, classes: int, tails: int) -> None:
    assert step(100, 20, classes, share) == (100,) * (classes - tails) + (5,) * tails


def test_pareto_is_near_to_imagenet_lt() -> None:
    counts = pareto(1280, 256, 1000, 6)
    # 115.8 thousand images (Liu et al. 2019); theirs is a draw, so a tenth is allowed
    assert sum(counts) == pytest.approx(115_800, rel=0.1)
    assert (counts[0], counts[-1]) == (1280, 5)
    steeper = pareto(1280, 256, 1000, 1)
    assert sum(steeper) < sum(counts) and all(a <= b for a, b in zip(steeper, counts, strict=True))


def test_a_flat_pareto_is_nearly_logarithmic() -> None:
    # the limit of large powers: (u^(-1/p) - 1) p -> -log u
    counts = pareto(1000, 10, 8, 1e6)
    expected = [100 + 900 * np.log(8 / rank) / np.log(8) for rank in range(1, 9)]
    assert counts == pytest.approx(expected, abs=1)


def test_counts_of_numpy_become_plain() -> None:
    counts = given(np.array([5, 3, 3]))
    assert counts == (5, 3, 3) and all(type(count) is int for count in counts)
    assert type(step(np.int64(7), 2, 1)[0]) is int


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exponential(10, 0.5, 3), "rho=0.5: must be a number, at least 1 (head over tail)"),
        (lambda: step(10, float("nan"), 3), "rho=nan: must be a number, at least 1"),
        (lambda: pareto(10, float("inf"), 3, 6), "rho=inf: must be a number, at least 1"),
        (lambda: exponential(0, 2, 3), "n_max=0: must be a whole number, at least 1"),
        (lambda: exponential(True, 2, 3), "n_max=True: must be a whole number, at least 1"),
        (lambda: step(2.5, 2, 3), "n_max=2.5: must be a whole number, at least 1"),  # type: ignore[arg-type]
        (lambda: exponential(10, 2, 0), "classes=0: must be a whole number, at least 1"),
        (lambda: step(10, 2, 3, 1.0), "tail_share=1.0: must be between 0 and 1"),
        (lambda: step(10, 2, 3, float("nan")), "tail_share=nan: must be between 0 and 1"),
        (lambda: pareto(10, 2, 3, 0.0), "power=0.0: must be from 0.1 to 1e6"),
        (lambda: balanced(3, 4), "total=3: must be a whole number, at least 4"),
        (lambda: balanced(3, 0), "classes=0: must be a whole number, at least 1"),
        (lambda: given([]), "counts=(): at least one class is needed"),
        (lambda: given([3, 0]), "counts[1]=0: must be a whole number, at least 1"),
        (lambda: given([3, 4]), "counts[1]=4: must be at most 3, the one before: head first"),
    ],
)
def test_wrong_values_are_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).startswith(message)


# ------------------------------------------------------------------------------------------- orders


@drawn(st.integers(1, 300), st.integers(0, 10_000))
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
def test_wrong_orders_are_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).startswith(message)
