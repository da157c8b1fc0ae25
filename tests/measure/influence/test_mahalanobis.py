"""The Mahalanobis distance in shrunk class covariances, against a direct inverse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from rarefy.measure.influence import mahalanobis, plan
from rarefy.measure.influence.mahalanobis import principal_directions, seeded_sample, shrinkage
from rarefy.measure.influence.passes import score_classes

SINGLE = 1e-4
"""Relative: the product is float32 (6e-8), with covariances of a condition of some thousands."""


def directly(rows: np.ndarray) -> np.ndarray:
    """From the formulas, with an explicit inverse."""
    count, width = rows.shape
    x = rows - rows.mean(axis=0)
    covariance = x.T @ x / count
    trace, norm = np.trace(covariance), (covariance**2).sum()
    over = (1 - 2 / width) * norm + trace**2
    under = (count + 1 - 2 / width) * (norm - trace**2 / width)
    weight = 1.0 if width == 1 or under <= 1e-12 * norm else min(1.0, over / under)
    shrunk = (1 - weight) * covariance + weight * trace / width * np.eye(width)
    return np.sqrt(np.einsum("ia,ab,ib->i", x, np.linalg.inv(shrunk), x))


@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 8))
@example(6, 36, 1)
def test_against_a_direct_inverse(seed, count, width):
    random = np.random.default_rng(seed)
    rows = random.standard_normal((count, width)) * np.exp(random.standard_normal(width))
    found = score_classes(rows, np.zeros(count, dtype=np.int64), 1)
    assert np.allclose(found.mahalanobis, directly(rows), rtol=SINGLE)
    assert 0 < found.shrinkage[0] <= 1


def test_the_weight_is_close_to_that_of_scikit_learn():
    """Which leaves out the terms with 2 / width: the same for many features."""
    from sklearn.covariance import OAS

    rows = np.random.default_rng(0).standard_normal((30, 400)) * np.linspace(0.1, 3, 400)
    x = rows - rows.mean(axis=0)
    scatter = x.T @ x
    mine = shrinkage(30, 400, float(np.trace(scatter)), float((scatter**2).sum()))
    assert mine == pytest.approx(OAS().fit(rows).shrinkage_, rel=0.01)


def test_the_weight_falls_with_samples_and_is_one_without_shape():
    weights = [shrinkage(count, 5, 10.0, 60.0) for count in (2, 10, 100, 1000)]
    assert weights == sorted(weights, reverse=True) and weights[-1] < 0.01
    assert shrinkage(10, 4, 8.0, 16.0) == 1.0  # isotropic: |S|^2 = tr(S)^2 / d
    assert shrinkage(10, 1, 3.0, 9.0) == 1.0
    rounded = 9.0 * (1 + 2e-16)  # a difference that is rounding and nothing else
    assert shrinkage(10, 1, 3.0, rounded) == shrinkage(10, 3, 27**0.5, rounded) == 1.0


def test_above_the_full_width_the_rest_is_isotropic(monkeypatch):
    """As if the class were isotropic outside of the leading directions, and had nothing in common
    between inside and outside; with all directions nothing is lost."""
    for module in (mahalanobis, plan):
        monkeypatch.setattr(module, "FULL_WIDTH", 3)
    random = np.random.default_rng(1)
    plane = np.linalg.qr(random.standard_normal((10, 10)))[0]
    rows = (
        random.standard_normal((400, 10)) * [9, 7, 5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5] @ plane.T
    )
    labels = np.repeat([0, 1], [12, 388])  # both routes
    monkeypatch.setattr(plan, "DIRECTIONS", 3)
    found = score_classes(rows, labels, 2)
    assert found.directions == 3 and found.routes == ("gram", "covariance")
    centred = [rows[labels == label] - rows[labels == label].mean(axis=0) for label in (0, 1)]
    pooled = np.concatenate(centred)  # fewer rows than a sample has: all of them
    lead = np.linalg.eigh(pooled.T @ pooled)[1][:, -3:]
    for label in (0, 1):
        mine = labels == label
        x = centred[label]
        scatter = x.T @ x
        trace, norm, count = np.trace(scatter), (scatter**2).sum(), len(x)
        weight = shrinkage(count, 10, trace, norm)
        inside = lead @ lead.T @ scatter @ lead @ lead.T
        rest = (trace - np.trace(inside)) / 7 * (np.eye(10) - lead @ lead.T)
        shrunk = (1 - weight) * (inside + rest) / count + weight * trace / 10 / count * np.eye(10)
        expected = np.sqrt(np.einsum("ia,ab,ib->i", x, np.linalg.inv(shrunk), x))
        assert np.allclose(found.mahalanobis[mine], expected, rtol=SINGLE)
        assert found.shrinkage[label] == pytest.approx(weight)
    monkeypatch.setattr(plan, "DIRECTIONS", 10)
    everything = score_classes(rows, labels, 2)
    for label in (0, 1):
        mine = labels == label
        assert np.allclose(everything.mahalanobis[mine], directly(rows[mine]), rtol=SINGLE)


@pytest.mark.parametrize("unit", [1e-60, 1e-30, 1e30, 1e60])
def test_float32_does_not_limit_the_range(unit):
    rows = np.random.default_rng(4).standard_normal((20, 3))
    found = score_classes(rows * unit, np.zeros(20, dtype=np.int64), 1)
    assert np.allclose(found.mahalanobis, directly(rows), rtol=SINGLE)


def test_finite_for_fewer_samples_than_features_and_zero_at_the_mean():
    rows = np.random.default_rng(2).standard_normal((5, 30))
    rows[4] = rows[:4].mean(axis=0)
    found = score_classes(rows, np.zeros(5, dtype=np.int64), 1)
    assert np.isfinite(found.mahalanobis).all()
    assert found.mahalanobis[4] < 1e-6 < found.mahalanobis[:4].min()


def test_principal_directions_are_those_of_an_svd():
    random = np.random.default_rng(3)
    rows = random.standard_normal((60, 20)) * np.geomspace(100, 0.1, 20)
    found = principal_directions(torch.from_numpy(rows), 4).numpy()
    assert np.allclose(found.T @ found, np.eye(4), atol=1e-12)
    expected = np.linalg.svd(rows, full_matrices=False)[2][:4].T
    assert np.allclose(np.abs((expected * found).sum(axis=0)), 1, atol=1e-3)
    assert principal_directions(torch.from_numpy(rows[:3]), 9).shape == (20, 3)


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(4, 30))
def test_a_sample_has_every_class(seed, count, most):
    labels = np.random.default_rng(seed).integers(0, 4, count)
    picked = seeded_sample(labels, 4, most, seed)
    assert len(picked) == min(count, most) and (np.diff(picked) > 0).all()
    assert set(labels[picked]) == set(labels)
    assert np.array_equal(picked, seeded_sample(labels, 4, most, seed))
