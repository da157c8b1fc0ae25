"""Groups of classes and what is summed up over them; head first throughout."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.representation import class_means
from rarefy.measure.representation.class_means import class_share, nearest_mean_accuracy
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


# -------------------------------------------------------------------------------------- class means


def rows(samples: int, width: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(samples, width, generator=generator, dtype=torch.float64)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(0, 99))
def test_nearest_mean_without_the_sample_itself(labels, seed):
    labels = torch.tensor(labels)
    features = rows(len(labels), 3, seed) + labels[:, None]
    found = nearest_mean_accuracy(features + 1e3, labels, 6)
    right = torch.zeros(6)
    for i, mine in enumerate(labels.tolist()):
        others = torch.arange(len(labels)) != i
        away = {
            c: float((features[i] - features[others & (labels == c)].mean(dim=0)).norm())
            for c in set(labels[others].tolist())
        }
        right[mine] += mine in away and min(away, key=away.__getitem__) == mine
    torch.testing.assert_close(
        found, right.double() / torch.bincount(labels, minlength=6), equal_nan=True
    )


def test_nearest_mean_of_one_sample_classes_and_ties():
    features = torch.tensor([[0.0], [0.0], [0.0], [5.0]])
    found = nearest_mean_accuracy(features, torch.tensor([0, 0, 0, 1]), 3)
    assert found[:2].tolist() == [1.0, 0.0] and found[2].isnan()
    same = nearest_mean_accuracy(torch.zeros(6, 2), torch.tensor([0, 0, 0, 1, 1, 1]), 2)
    assert same.tolist() == [0.0, 0.0]


def test_a_part_of_the_rows_at_a_time(monkeypatch):
    labels = torch.arange(50) % 4
    features = rows(50, 3) + labels[:, None]
    whole = nearest_mean_accuracy(features, labels, 4)
    monkeypatch.setitem(class_means._VALUES, "cpu", 20)  # two rows
    assert torch.equal(nearest_mean_accuracy(features, labels, 4), whole)
    assert 0 < whole.mean() < 1


def test_share_between_classes_of_points_on_two_levels():
    features = torch.tensor([[1.0, 3.0], [1.0, -3.0], [-1.0, 3.0], [-1.0, -3.0]])
    labels = torch.tensor([0, 0, 1, 1])
    assert class_share(features, labels, 2) == pytest.approx(0.1)  # 1 of 1 + 9
    assert class_share(features + 7, labels, 5) == pytest.approx(0.1)
    assert class_share(features[:, :1], labels, 2) == pytest.approx(1)
    assert class_share(torch.ones(4, 2), labels, 2) != class_share(torch.ones(4, 2), labels, 2)


def test_share_between_classes_that_mean_nothing():
    labels = torch.arange(200) % 10
    found = torch.tensor([class_share(rows(200, 4, seed), labels, 10) for seed in range(50)])
    error = float(found.std() / 50**0.5)
    assert abs(float(found.mean()) - 9 / 199) < 4 * error


def test_class_means_that_cannot_be():
    features, labels = rows(10, 3), torch.zeros(10, dtype=torch.int64)
    with pytest.raises(UsageError, match="measured labels=3: must be in 0..1"):
        nearest_mean_accuracy(features, labels + 3, 2)
    features[4, 1] = torch.inf
    with pytest.raises(UsageError, match=r"1 of 10 rows .* \(rows 4\)"):
        nearest_mean_accuracy(features, labels, 1)
