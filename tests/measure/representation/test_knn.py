"""Votes of neighbours against scikit-learn, and what may not matter to them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.representation import knn
from rarefy.measure.representation.knn import knn_predict, unit_rows


def problem(seed: int = 0, samples: int = 300, classes: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (samples,), generator=generator)
    means = torch.randn(classes, 12, generator=generator)
    known = means[labels] + 1.5 * torch.randn(samples, 12, generator=generator)
    asked = means.repeat(20, 1) + 1.5 * torch.randn(20 * classes, 12, generator=generator)
    return known, labels, asked


@pytest.mark.parametrize(("k", "temperature"), [(1, 0.1), (20, 0.07), (200, 0.1), (300, 1.0)])
def test_it_is_scikit_learns_weighted_vote(k, temperature):
    known, labels, asked = problem()
    reference = KNeighborsClassifier(
        k, metric="cosine", weights=lambda distance: np.exp((1 - distance) / temperature)
    ).fit(known.double().numpy(), labels.numpy())
    answer = knn_predict(known, labels, asked, 5, k, temperature)
    expected = reference.predict(asked.double().numpy())
    # no vote of these is closer than float32 can tell
    assert (answer.predicted.numpy() == expected).all()
    assert (answer.k, answer.limited) == (k, False)


def test_fewer_references_than_neighbours_all_vote_and_it_is_said():
    known, labels, asked = problem()
    all_of_them = knn_predict(known, labels, asked, 5, k=300)
    more = knn_predict(known, labels, asked, 5, k=1000)
    assert (more.predicted == all_of_them.predicted).all()
    assert (more.k, more.asked, more.limited) == (300, 1000, True)
    one = knn_predict(known[:1], labels[:1], asked, 5)
    assert set(one.predicted.tolist()) == {int(labels[0])} and one.k == 1


def test_a_class_without_references_is_never_predicted_even_when_votes_would_vanish():
    known, labels, asked = problem()
    keep = labels > 0
    for temperature in (0.1, 1e-6):
        # seen from the other side every cosine is about -1, and exp(-1e6) is 0
        far = -known[keep][:50]
        answer = knn_predict(known[keep], labels[keep], far, 9, 5, temperature)
        assert set(answer.predicted.tolist()) <= {1, 2, 3, 4}
    opposite = knn_predict(
        torch.tensor([[1.0, 0.0]]), torch.tensor([3]), torch.tensor([[-1.0, 0.0]]), 5, 1, 1e-3
    )
    assert opposite.predicted.tolist() == [3]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.floats(-30, 30))
def test_lengths_do_not_matter_and_parts_do_not_either(seed, exponent):
    known, labels, asked = problem(seed, 60)
    here = knn_predict(known, labels, asked, 5, 7).predicted
    longer = torch.rand(60, 1, generator=torch.Generator().manual_seed(seed)) + 0.5
    scaled = knn_predict(known * longer * 10**exponent, labels, asked * 10**-exponent, 5, 7)
    # scaling rounds: a vote that is all but even may turn
    assert (scaled.predicted == here).double().mean() >= 0.98
    alone = [int(knn_predict(known, labels, row[None], 5, 7).predicted) for row in asked[:10]]
    assert alone == here[:10].tolist()


def test_small_parts(monkeypatch):
    known, labels, asked = problem()
    whole = knn_predict(known, labels, asked, 5).predicted
    monkeypatch.setitem(knn._SIMILARITIES, "cpu", 1000)
    assert (knn_predict(known, labels, asked, 5).predicted == whole).all()
    assert len(knn_predict(known, labels, asked[:0], 5).predicted) == 0


def test_rows_of_length_one():
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e30, 0.0], [3e-30, 4e-30]])
    expected = torch.tensor([[0.6, 0.8], [0.0, 0.0], [1.0, 0.0], [0.6, 0.8]])
    torch.testing.assert_close(unit_rows(rows), expected)


def test_errors():
    known, labels, asked = problem()
    with pytest.raises(UsageError, match="k=0: must be at least 1"):
        knn_predict(known, labels, asked, 5, 0)
    for temperature in (0.0, -0.1, float("nan")):
        with pytest.raises(UsageError, match="temperature=.*: must be positive and finite"):
            knn_predict(known, labels, asked, 5, 1, temperature)
    with pytest.raises(UsageError, match=r"queries=\(100, 11\): must have 12 columns"):
        knn_predict(known, labels, asked[:, :11], 5)
    asked[7] = torch.nan
    with pytest.raises(UsageError, match=r"queries: 1 of 100 rows .* \(rows 7\)"):
        knn_predict(known, labels, asked, 5)
    with pytest.raises(UsageError, match=r"reference features=\(0, 12\): must have at least 1"):
        knn_predict(known[:0], labels[:0], asked, 5)
    with pytest.raises(UsageError, match=r"reference labels=4: must be in 0\.\.3"):
        knn_predict(known, labels, asked, 4)
