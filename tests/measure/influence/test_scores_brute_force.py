"""``score_classes`` against the definition of the score: within 1e-9 |Cov|_F^2 for every sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.measure.influence import products
from rarefy.measure.influence.passes import score_classes
from rarefy.measure.influence.plan import CovarianceStep, GramStep, make_plan

TOLERANCE = 1e-9
"""In parts of |Cov|_F^2: what is promised; rounding alone gives about 1e-14."""


def made_up(
    seed: int, counts: list[int], width: int, kind: str, trait: str
) -> tuple[np.ndarray, np.ndarray]:
    """Features with spread and a trait; labels in random order."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(counts)), counts)
    random.shuffle(labels)
    spread = np.exp(random.standard_normal(width))
    rows = random.standard_normal((len(labels), width)) * spread + labels[:, None]
    if trait == "copies" and len(rows):
        rows = rows[random.integers(0, max(1, len(rows) // 3), len(rows))]
    elif trait == "constant":
        rows[:] = 1e6 + 0.1
    elif trait == "some constant":
        rows[:, : (width + 1) // 2] = 7.0
    elif trait == "offset":
        rows += 1e6
    if kind == "uint8":
        return np.clip(rows * 20 + 128, 0, 255).astype(np.uint8), labels
    return rows.astype(kind), labels


def agrees(features: np.ndarray, labels: np.ndarray, classes: int, brute: Any, **options: Any):
    ddof = options.get("ddof", 1)
    found = score_classes(features, labels, classes, **options)
    expected, norms = brute(features, labels, classes, ddof)
    assert np.array_equal(np.isnan(found.influence), np.isnan(expected))
    allowed = TOLERANCE * norms[labels]
    known = ~np.isnan(expected)
    assert (np.abs(found.influence - expected)[known] <= allowed[known]).all()
    assert np.allclose(found.covariance_norms, norms, rtol=1e-9, atol=0, equal_nan=True)
    assert np.array_equal(found.counts, np.bincount(labels, minlength=classes))
    assert np.isfinite(found.norm).all()
    assert np.isfinite(found.mahalanobis[found.counts[labels] > 1]).all()
    return found


@given(
    seed=st.integers(0, 10**6),
    counts=st.lists(st.sampled_from([0, 1, 2, 3, 4, 7, 12, 25]), min_size=1, max_size=5),
    width=st.sampled_from([1, 2, 5, 9]),
    kind=st.sampled_from(["float64", "float32", "float16", "uint8", "int32"]),
    trait=st.sampled_from(["plain", "copies", "constant", "some constant", "offset"]),
    ddof=st.integers(0, 1),
    chunk=st.sampled_from([None, 1, 2, 5]),
)
def test_equal_to_brute_force(brute_force, seed, counts, width, kind, trait, ddof, chunk):
    if kind == "float16" and trait in ("offset", "constant"):
        kind = "float64"  # 1e6 is infinite in float16
    features, labels = made_up(seed, counts, width, kind, trait)
    agrees(features, labels, len(counts), brute_force, ddof=ddof, chunk=chunk)


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    counts=st.lists(st.sampled_from([0, 1, 5, 11, 30]), min_size=2, max_size=6),
    width=st.sampled_from([3, 8]),
    spare=st.integers(0, 4000),
)
def test_equal_to_brute_force_with_little_memory(
    brute_force, least_memory, seed, counts, width, spare
):
    features, labels = made_up(seed, counts, width, "float32", "plain")
    memory = least_memory(counts, width, 4, None, torch.get_num_threads()) + spare
    agrees(features, labels, len(counts), brute_force, memory=memory)


def test_little_memory_means_groups_and_tiles(brute_force, least_memory):
    counts = [30, 40, 15, 33, 31]
    features, labels = made_up(3, counts, 8, "float64", "plain")
    plain = agrees(features, labels, 5, brute_force)
    assert plain.routes == ("covariance", "covariance", "gram", "covariance", "covariance")
    memory = least_memory(counts, 8, 8, None, torch.get_num_threads())
    plan = make_plan(np.array(counts), 8, 8, memory, None, torch.get_num_threads())
    assert sum(isinstance(step, CovarianceStep) for step in plan.steps) > 1
    assert [step.kept for step in plan.steps if isinstance(step, GramStep)] == [False]
    found = agrees(features, labels, 5, brute_force, memory=memory)
    assert found.memory <= memory
    for name in ("influence", "distance", "norm"):
        assert np.allclose(getattr(found, name), getattr(plain, name), rtol=1e-10, atol=1e-12)
    assert np.allclose(found.mahalanobis, plain.mahalanobis, rtol=1e-5)


def test_offset_far_above_the_spread(brute_force):
    """Spread 1e-3 at 1e6: in float64 the values themselves have seven digits of it, all used."""
    random = np.random.default_rng(0)
    features = 1e6 + 1e-3 * random.standard_normal((40, 6))
    labels = np.repeat([0, 1], [35, 5])  # both routes
    found = agrees(features, labels, 2, brute_force)
    assert found.routes == ("covariance", "gram")


@pytest.mark.parametrize("chunk", [None, 3])
def test_the_products_of_a_gpu_give_the_same(brute_force, monkeypatch, chunk):
    """Done on a CPU, so that they are tested where there is no GPU."""
    features, labels = made_up(4, [30, 2, 5, 40], 6, "float32", "offset")
    by_blas = agrees(features, labels, 4, brute_force, chunk=chunk)
    monkeypatch.setattr(products, "uses_blas", lambda rows: False)
    in_full = agrees(features, labels, 4, brute_force, chunk=chunk)
    assert np.allclose(in_full.distance, by_blas.distance, rtol=1e-9)
    assert np.allclose(in_full.mahalanobis, by_blas.mahalanobis, rtol=1e-5)


def test_two_cores_give_the_same_bits_as_one(brute_force, threads):
    features, labels = made_up(5, [40, 3, 50, 45], 7, "float32", "plain")
    found = agrees(features, labels, 4, brute_force, chunk=9)
    known = REMEMBERED.setdefault("scores", found)
    for name in ("influence", "own", "shared", "shrinking", "distance", "mahalanobis", "norm"):
        assert np.array_equal(getattr(found, name), getattr(known, name))


REMEMBERED: dict[str, Any] = {}


@pytest.mark.parametrize("scale", [1 / 255, -2.0])
def test_scale_multiplies_the_features(scale):
    features, labels = made_up(6, [20, 4], 4, "uint8", "plain")
    scaled = score_classes(features, labels, 2, scale=scale)
    plain = score_classes(features.astype(np.float64) * scale, labels, 2)
    for name in ("influence", "own", "shared", "shrinking", "distance", "norm", "means"):
        assert np.allclose(getattr(scaled, name), getattr(plain, name), rtol=1e-9, atol=1e-12)
    assert np.allclose(scaled.covariance_norms, plain.covariance_norms, rtol=1e-12)
    assert np.allclose(scaled.mahalanobis, plain.mahalanobis, rtol=1e-5)


def test_distance_norm_and_mean():
    features, labels = made_up(7, [9, 1, 30], 5, "float64", "plain")
    found = score_classes(features, labels, 3)
    for label in (0, 2):
        mean = features[labels == label].mean(axis=0)
        assert np.allclose(found.means[label], mean, rtol=1e-13)
        away = np.linalg.norm(features[labels == label] - mean, axis=1)
        assert np.allclose(found.distance[labels == label], away, rtol=1e-12)
    assert np.allclose(found.norm, np.linalg.norm(features, axis=1), rtol=1e-13)
    # a class of one has nothing to be compared with
    alone = labels == 1
    for name in ("influence", "distance", "mahalanobis"):
        assert np.isnan(getattr(found, name)[alone]).all()


def test_an_empty_set_and_empty_classes():
    found = score_classes(np.zeros((0, 3)), np.zeros(0, dtype=np.int64), 2)
    assert len(found.influence) == 0 and found.routes == ("", "")
    assert np.isnan(found.means).all()


def test_a_class_without_spread_is_typical_throughout():
    features = np.full((6, 3), 1e6 + 0.1)
    found = score_classes(features, np.zeros(6, dtype=np.int64), 1)
    for name in ("influence", "own", "shared", "shrinking", "distance", "mahalanobis"):
        assert (getattr(found, name) == 0).all()
