"""How features lie, against closed forms and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.representation import structure
from rarefy.measure.representation.structure import (
    alignment,
    effective_rank,
    fisher_ratio,
    nearest_mean_accuracy,
    uniformity,
)


def rows(samples: int, width: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(samples, width, generator=generator, dtype=torch.float64)


def test_alignment():
    one = rows(50, 6)
    assert alignment(one, one * 7) == pytest.approx(0, abs=1e-15)
    assert alignment(one, -one) == pytest.approx(4)
    first, second = torch.eye(4)[:2], torch.eye(4)[2:]
    assert alignment(first, second) == pytest.approx(2)
    assert alignment(first, second, power=1) == pytest.approx(math.sqrt(2))


def test_uniformity_is_the_mean_over_pairs(monkeypatch):
    features = rows(40, 5)
    unit = torch.nn.functional.normalize(features, dim=1)
    expected = torch.pdist(unit).square().mul(-2).exp().mean().log()
    assert uniformity(features) == pytest.approx(float(expected), rel=1e-12)
    monkeypatch.setitem(structure._VALUES, "cpu", 100)
    assert uniformity(features * 3) == pytest.approx(float(expected), rel=1e-12)
    assert uniformity(torch.ones(9, 4)) == pytest.approx(0, abs=1e-12)
    assert uniformity(torch.tensor([[1.0], [-1.0]])) == pytest.approx(-8)
    # exp(-2000) is 0 in float64, its logarithm is not
    assert uniformity(torch.tensor([[1.0], [-1.0]]), t=500) == pytest.approx(-2000)


def test_effective_rank_of_known_spectra():
    turn = torch.linalg.qr(rows(8, 8))[0]
    plus_minus = torch.cat([torch.eye(8), -torch.eye(8)]).double()
    assert effective_rank(plus_minus @ turn) == pytest.approx(8)
    assert effective_rank(plus_minus[:, :3] @ turn[:3]) == pytest.approx(3)
    two_sizes = plus_minus[:, :2] * torch.tensor([3.0, 1.0])
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert effective_rank(two_sizes @ turn[:2]) == pytest.approx(math.exp(entropy))
    assert effective_rank(two_sizes @ turn[:2] + 1e4) == pytest.approx(math.exp(entropy))
    assert effective_rank(torch.full((30, 5), 0.1)) == 0
    assert effective_rank(torch.full((30, 5), 0.1), centred=False) == pytest.approx(1)
    assert effective_rank(torch.full((1, 5), 0.1)) == 0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999), st.integers(2, 12), st.integers(1, 12))
def test_effective_rank_is_that_of_the_singular_values(seed, samples, width):
    features = rows(samples, width, seed)
    for centred in (True, False):
        values = torch.linalg.svdvals(features - features.mean(dim=0) * centred)
        share = values / values.sum()
        expected = float(torch.special.entr(share).sum().exp())
        # roots of squares: a singular value of 1e-16 is 1e-8 or nothing
        assert effective_rank(features, centred) == pytest.approx(expected, rel=1e-6)
        assert effective_rank(features, centred) <= min(samples, width) * (1 + 1e-6)


def test_fisher_ratio_is_without_bias():
    """|m - m'|^2 / (v + v') of the law, also for a class of three samples."""
    width, counts = 20, (400, 400, 3)
    labels = torch.arange(3).repeat_interleave(torch.tensor(counts))
    means = torch.zeros(3, width, dtype=torch.float64)
    means[1, 0] = 4.0
    spread = torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64)
    found = torch.stack(
        [
            fisher_ratio(
                means[labels] + spread[labels][:, None] * rows(803, width, seed), labels, 3
            )
            for seed in range(200)
        ]
    )
    between, same = 16 / (20 + 80), 0.0
    expected = [(between + same) / 2, between, (same + between) / 2]
    # five standard errors of the 200 repetitions, and 2 % for the ratio of random numbers
    allowed = 5 * found.std(dim=0) / math.sqrt(200) + 0.02 * torch.tensor(expected)
    assert ((found.mean(dim=0) - torch.tensor(expected)).abs() < allowed).all()
    assert (found[:, 0] > 0).all()


def test_fisher_ratio_by_a_plain_loop_with_rare_and_missing_classes(monkeypatch):
    labels = torch.tensor([0] * 9 + [1] * 2 + [3] * 7 + [4])
    features = rows(19, 6) + 2.0 * torch.eye(6, dtype=torch.float64)[labels]
    monkeypatch.setitem(structure._VALUES, "cpu", 20)
    found = fisher_ratio(features.float() + 100, labels, 6)
    assert found.isnan().tolist() == [False, False, True, False, True, True]
    usable = [0, 1, 3]
    parts = {c: features[labels == c].numpy() for c in usable}
    for c in usable:
        ratios = []
        for other in usable:
            if other == c:
                continue
            a, b = parts[c], parts[other]
            va, vb = a.var(axis=0, ddof=1).sum(), b.var(axis=0, ddof=1).sum()
            apart = ((a.mean(axis=0) - b.mean(axis=0)) ** 2).sum() - va / len(a) - vb / len(b)
            ratios.append(apart / (va + vb))
        assert float(found[c]) == pytest.approx(np.mean(ratios), rel=1e-4)
    assert fisher_ratio(features[:9], labels[:9], 1).isnan().all()


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


def test_errors():
    features, labels = rows(10, 3), torch.zeros(10, dtype=torch.int64)
    bad = features.clone()
    bad[4, 1] = torch.inf
    for measure in (
        lambda x: alignment(x, features),
        lambda x: alignment(features, x),
        uniformity,
        effective_rank,
        lambda x: fisher_ratio(x, labels, 1),
        lambda x: nearest_mean_accuracy(x, labels, 1),
    ):
        with pytest.raises(UsageError, match=r"1 of 10 rows .* \(rows 4\)"):
            measure(bad)
    with pytest.raises(UsageError, match=r"second=\(10, 2\): must be \(10, 3\), like first"):
        alignment(features, features[:, :2])
    with pytest.raises(UsageError, match="power=0: must be positive"):
        alignment(features, features, 0)
    with pytest.raises(UsageError, match="t=-1: must be positive"):
        uniformity(features, -1)
    with pytest.raises(UsageError, match=r"features=\(1, 3\): must have at least 2 rows"):
        uniformity(features[:1])
    with pytest.raises(UsageError, match="measured labels=3: must be in 0..1"):
        fisher_ratio(features, labels + 3, 2)
