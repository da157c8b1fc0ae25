"""Samples nearest to the mean of their own class, against plain loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.representation import class_means
from rarefy.measure.representation.class_means import class_share, nearest_mean_accuracy


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


def test_errors():
    features, labels = rows(10, 3), torch.zeros(10, dtype=torch.int64)
    with pytest.raises(UsageError, match="measured labels=3: must be in 0..1"):
        nearest_mean_accuracy(features, labels + 3, 2)
    features[4, 1] = torch.inf
    with pytest.raises(UsageError, match=r"1 of 10 rows .* \(rows 4\)"):
        nearest_mean_accuracy(features, labels, 1)
