"""Groups of classes and what is summed up over them; head first throughout."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.measure.representation.groups import (
    GroupMeans,
    delta_20,
    group_means,
    groups,
    spread,
    summary,
)

CIFAR = tuple(int(5000 * 100 ** (-i / 9)) for i in range(10))


def test_thirds_are_those_of_sdclr():
    assert [len(group) for group in groups(CIFAR)] == [4, 3, 3]
    assert groups(CIFAR).few == (7, 8, 9)
    assert [len(group) for group in groups([1] * 100)] == [34, 33, 33]


@given(st.integers(1, 60))
def test_thirds_are_even_and_the_rest_goes_to_the_front(classes):
    made = groups([7] * classes)
    parts = np.array_split(np.arange(classes), 3)
    assert [list(group) for group in made] == [part.tolist() for part in parts]


def test_by_count():
    made = groups((1280, 101, 100, 50, 20, 19, 5), "counts")
    assert made == ((0, 1), (2, 3, 4), (5, 6))
    assert groups((500, 500), "counts") == ((0, 1), (), ())


def test_delta_20_is_positive_when_the_head_is_better():
    assert delta_20(np.linspace(1.0, 0.1, 10)) == pytest.approx(0.95 - 0.15)
    assert delta_20(np.arange(100)[::-1]) == pytest.approx(80)
    assert delta_20([0.9, 0.8, 0.4]) == pytest.approx(0.5)  # at least one class
    assert delta_20([0.9]) == 0
    assert delta_20([0.9] + [0.5] * 12 + [0.1]) == pytest.approx(0.7 - 0.3)  # 14 // 5 = 2
    assert delta_20([math.nan, 0.8] + [0.5] * 6 + [0.2, 0.4]) == pytest.approx(0.5)
    assert math.isnan(delta_20([math.nan] * 2 + [0.5] * 8))


@given(st.lists(st.floats(0, 1), min_size=3, max_size=40))
def test_a_summary_is_made_of_its_parts(accuracy):
    counts = list(range(len(accuracy), 0, -1))
    made = summary(accuracy, counts)
    parts = [np.mean(part) for part in np.array_split(np.array(accuracy), 3)]
    assert [made.many, made.medium, made.few] == pytest.approx(parts)
    assert made.spread == pytest.approx(np.std(parts), abs=1e-12)
    assert made.overall == pytest.approx(np.mean(accuracy))
    assert made.by_rank == tuple(accuracy)
    # turned around, what was head is tail
    assert summary(accuracy[::-1], counts).delta_20 == pytest.approx(-made.delta_20, abs=1e-12)


def test_an_empty_group_has_no_mean_and_the_three_no_spread():
    made = summary([0.9, 0.7], (500, 5), "counts")
    assert (made.many, made.few) == (0.9, 0.7)
    assert math.isnan(made.medium) and math.isnan(made.spread)
    assert made.overall == pytest.approx(0.8)
    assert spread(GroupMeans(0.5, 0.5, 0.5)) == 0
    assert math.isnan(group_means([math.nan, 0.2, 0.3], groups((3, 2, 1))).many)


def test_errors():
    with pytest.raises(UsageError, match="rule='halves': must be one of thirds, counts"):
        groups(CIFAR, "halves")
    with pytest.raises(UsageError, match=r"counts=\(\): must hold at least one class"):
        groups(())
    with pytest.raises(UsageError, match=r"counts=6: must not rise: head first \(rank 1 has 5\)"):
        groups((9, 5, 6))
    with pytest.raises(UsageError, match="counts=-1: must be at least 0"):
        groups((9, -1))
    with pytest.raises(UsageError, match="counts=10: must be one for each of 3 classes"):
        summary([0.1, 0.2, 0.3], CIFAR)
    with pytest.raises(UsageError, match="which=10: must hold each of 3 ranks once"):
        group_means([0.1, 0.2, 0.3], groups(CIFAR))
    for bad in ([], [[0.1]]):
        with pytest.raises(
            UsageError, match=r"accuracy_by_rank=.*must have the shape \(classes,\)"
        ):
            delta_20(bad)
