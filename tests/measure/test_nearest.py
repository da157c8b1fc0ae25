"""Nearest neighbours by products, against scikit-learn, and what their labels say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from rarefy.core.errors import OutOfTime, UsageError
from rarefy.measure.nearest import FITTED, _reference, nearest


def clouds(count: int, width: int, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    labels = generator.integers(0, classes, count)
    centres = generator.normal(0, 3, (classes, width))
    return (centres[labels] + generator.normal(0, 1, (count, width))).astype(np.float32), labels


def test_small_sets_are_exact() -> None:
    features, labels = clouds(300, 12)
    found = nearest(features, labels, 7)
    asked = NearestNeighbors(n_neighbors=8, algorithm="brute").fit(features)
    distances, indices = asked.kneighbors(features)
    np.testing.assert_array_equal(found.indices, indices[:, 1:])
    np.testing.assert_allclose(found.distances, distances[:, 1:], rtol=1e-3, atol=1e-3)
    theirs = labels[found.indices]
    np.testing.assert_allclose(found.disagreement, (theirs != labels[:, None]).mean(1))
    assert (found.among, found.width) == (300, 12)


def test_a_copy_is_a_neighbour_and_oneself_is_not() -> None:
    features = np.array([[0.0], [0.0], [5.0], [6.0]])
    found = nearest(features, np.array([0, 1, 0, 0]), 1)
    assert found.indices[:, 0].tolist() == [1, 0, 3, 2]
    assert found.disagreement.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert found.label.tolist() == [1, 0, 0, 0]


def test_a_tie_of_labels_is_decided_for_its_own_and_else_for_the_smallest() -> None:
    features = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    found = nearest(features, np.array([0, 0, 1, 0, 2, 1]), 2)
    assert found.label[0] == 0 and found.label[3] == 1


def test_wide_features_are_projected_and_neighbours_stay_mostly_the_same() -> None:
    generator = np.random.default_rng(0)
    few, labels = clouds(1_000, 10)
    mixed = few @ generator.normal(0, 1, (10, 200)).astype(np.float32)
    found = nearest(mixed + 0.01 * generator.normal(0, 1, mixed.shape), labels, 5, width=16)
    exact = nearest(mixed, labels, 5, width=200)
    shared = [len(set(a) & set(b)) / 5 for a, b in zip(found.indices, exact.indices, strict=True)]
    assert found.width == 16 and np.mean(shared) > 0.9


def test_a_reference_has_every_class_and_its_size() -> None:
    features, labels = clouds(3_000, 5)
    labels[:3] = [4, 4, 5]
    found = nearest(features, labels, 3, reference=200)
    assert found.among == 200
    chosen = _reference(labels, 200, 3, np.random.default_rng(0))
    assert {0, 1, 2} <= set(chosen) and len(chosen) == len(set(chosen)) == 200
    again = nearest(features, labels, 3, reference=200)
    np.testing.assert_array_equal(found.indices, again.indices)
    other = nearest(features, labels, 3, reference=200, seed=1)
    assert (other.indices != found.indices).any()
    spread = np.bincount(labels[np.unique(found.indices)], minlength=6)
    assert (spread[:4] > 20).all()


def test_a_class_of_one_still_has_neighbours_and_a_pair_too() -> None:
    found = nearest(np.array([[0.0], [1.0]]), np.array([0, 1]), 1)
    assert found.disagreement.tolist() == [1.0, 1.0]


def test_uint8_pixels_and_large_offsets() -> None:
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 255, (200, 30)).astype(np.uint8)
    labels = np.zeros(200, dtype=np.int64)
    plain = nearest(pixels, labels, 4)
    moved = nearest(pixels.astype(np.float64) + 1e4, labels, 4)
    assert (plain.indices == moved.indices).mean() > 0.99


def test_progress_adds_up_and_a_stop_is_heard() -> None:
    features, labels = clouds(FITTED + 1_000, 3)
    told: list[float] = []
    nearest(features, labels, 2, progress=told.append)
    assert sum(told) == pytest.approx(1)

    def stop() -> None:
        raise OutOfTime("over")

    with pytest.raises(OutOfTime, match="over"):
        nearest(features, labels, 2, stop=stop)


@pytest.mark.parametrize("k", [0, 5])
def test_how_many_neighbours_there_can_be(k: int) -> None:
    with pytest.raises(UsageError, match=f"neighbours={k}: must be from 1 to 4"):
        nearest(np.zeros((5, 2)), np.zeros(5, dtype=np.int64), k)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_finds_the_same() -> None:
    features, labels = clouds(5_000, 20)
    here, there = nearest(features, labels, 5), nearest(features, labels, 5, device="cuda")
    assert (here.indices == there.indices).mean() > 0.999
    np.testing.assert_allclose(here.disagreement.mean(), there.disagreement.mean(), atol=1e-3)
