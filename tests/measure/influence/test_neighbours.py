"""Nearest neighbours against scikit-learn's brute force and against plain distances."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from rarefy.core.errors import OutOfTime, UsageError
from rarefy.measure.influence import search
from rarefy.measure.influence.neighbours import (
    Neighbours,
    disagreement,
    make_space,
    nearest,
    reference_rows,
    typical_neighbours,
)


def plainly(rows: np.ndarray, k: int, among: np.ndarray | None = None) -> tuple:
    """All distances, itself left out, ties by number."""
    among = np.arange(len(rows)) if among is None else among
    squares = ((rows[:, None] - rows[None, among]) ** 2).sum(axis=2)
    squares[np.arange(len(rows))[:, None] == among[None]] = np.inf
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return among[order], np.sqrt(np.take_along_axis(squares, order, axis=1))


def test_equal_to_scikit_learn(threads):
    rows = np.random.default_rng(0).standard_normal((700, 12)).astype(np.float32)
    found = nearest(rows, 7)
    away, expected = NearestNeighbors(n_neighbors=8, algorithm="brute").fit(rows).kneighbors(rows)
    assert np.array_equal(found.indices, expected[:, 1:])  # the first is the sample itself
    assert np.allclose(found.distances, away[:, 1:], rtol=1e-5)
    assert (found.references, found.width) == (700, 12)


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 9), st.sampled_from([0, 1000]))
def test_copies_and_ties_are_ordered_by_number(seed, count, k, offset):
    """Whole numbers, so that distances are exact and often equal."""
    rows = np.random.default_rng(seed).integers(0, 3, (count, 2)) + offset
    space = make_space(rows)
    space.mean[:] = offset  # a whole number as well
    found = nearest(rows, k, space=space)
    expected, away = plainly(rows.astype(np.float64), k)
    there = expected.shape[1] - (expected.shape[1] == count)
    assert np.array_equal(found.indices[:, :there], expected[:, :there])
    assert np.allclose(found.distances[:, :there], away[:, :there], rtol=1e-6)
    assert (found.indices[:, there:] == -1).all() and np.isnan(found.distances[:, there:]).all()
    assert (found.indices != np.arange(count)[:, None]).all()


def test_more_copies_than_candidates_are_found_by_number():
    """Distances that float32 cannot tell apart: the bound notices, float64 decides."""
    random = np.random.default_rng(1)
    rows = np.concatenate([np.zeros((60, 4)), random.standard_normal((40, 4)) * 1e-4])
    rows += 3.0
    rows[99] = 1e3
    space = make_space(rows)
    space.mean[:] = 3.0
    found = nearest(rows, 5, space=space)
    assert np.array_equal(found.indices[:3], [[1, 2, 3, 4, 5], [0, 2, 3, 4, 5], [0, 1, 3, 4, 5]])
    expected, _ = plainly((rows - 3.0).astype(np.float32).astype(np.float64), 5)
    assert np.array_equal(found.indices, expected)


def test_several_blocks_of_references(monkeypatch):
    monkeypatch.setitem(search._STRIDE, "cpu", 128)
    monkeypatch.setitem(search.BLOCK, "cpu", 17)
    monkeypatch.setattr(search, "_GROUPS", 4)
    rows = np.random.default_rng(2).standard_normal((500, 6)).astype(np.float32)
    expected, away = plainly(rows.astype(np.float64), 3)
    found = nearest(rows, 3)
    assert np.array_equal(found.indices, expected)
    assert np.allclose(found.distances, away, rtol=1e-5)


def test_the_smallest_by_groups():
    values = torch.randn(30, 2048, generator=torch.Generator().manual_seed(0))
    found, places = search.smallest(values, 20)
    assert torch.equal(found, values.sort(dim=1).values[:, :20])
    assert torch.equal(values.gather(1, places), found)


def test_some_queries_and_some_references():
    rows = np.random.default_rng(3).standard_normal((80, 5)).astype(np.float32)
    labels = np.arange(80) % 4
    among = reference_rows(labels, 4, 30, seed=1)
    assert len(among) == 30 and set(labels[among]) == {0, 1, 2, 3}
    asked = np.array([70, 3, 11])
    found = nearest(rows, 4, queries=asked, references=among, scale=-2.0)
    expected, away = plainly(rows.astype(np.float64), 4, among)
    assert np.array_equal(found.indices, expected[asked])
    assert np.allclose(found.distances, 2 * away[asked], rtol=1e-5)
    none = nearest(rows, 4, queries=asked, references=among[:0])
    assert (none.indices == -1).all() and np.isnan(none.distances).all()


def test_a_rare_class_has_references_of_its_own():
    labels = np.r_[np.zeros(5000), np.ones(60), np.full(8, 2)].astype(np.int64)
    among = reference_rows(labels, 3, 600)
    assert np.array_equal(among, np.unique(among))
    common, rare, rarest = np.bincount(labels[among])
    assert rare == 50 and rarest == 8 and 550 <= common <= 600
    # where every class has enough, nothing is added
    even = np.arange(5000) % 5
    assert len(reference_rows(even, 5, 1000)) == 1000


def test_fewer_dimensions():
    random = np.random.default_rng(4)
    rows = random.standard_normal((300, 5)) @ random.standard_normal((5, 40)) + 1e3
    space = make_space(rows, 8)
    found = nearest(rows, 5, space=space)
    assert found.width == 8
    expected, away = plainly(rows, 5)
    assert np.array_equal(found.indices, expected)  # eight directions hold all five
    assert np.allclose(found.distances, away, rtol=1e-4)
    again = make_space(rows, 8)
    assert torch.equal(space.directions, again.directions)
    assert make_space(rows, 40).directions is None


def test_disagreement_and_the_most_common_label():
    labels = np.array([0, 0, 1, 1, 2])
    neighbours = Neighbours(
        np.array([[1, 2, 3], [0, 2, 4], [-1, -1, -1], [4, 1, -1]]), np.zeros((4, 3)), 5, 1
    )
    share, common = disagreement(neighbours, labels, np.array([0, 0, 1, 2]))
    assert np.allclose(share, [2 / 3, 2 / 3, np.nan, 1 / 2], equal_nan=True)
    # three labels once each: that of the nearest
    assert common.tolist() == [1, 0, -1, 2]


def test_typical_neighbours_are_of_the_class_and_usual():
    random = np.random.default_rng(5)
    rows, labels = random.standard_normal((60, 3)), np.repeat([0, 1, 2], [30, 28, 2])
    percentile = random.uniform(0, 100, 60)
    percentile[labels == 2] = np.nan
    asked = np.array([40, 2, 59, 7])
    found = typical_neighbours(rows, labels, percentile, asked, 4, below=40.0)
    for row, sample in enumerate(asked):
        usual = np.flatnonzero((labels == labels[sample]) & (percentile <= 40) & (labels != 2))
        if labels[sample] == 2:
            assert (found.indices[row] == -1).all()
            continue
        usual = usual[usual != sample]
        away = np.linalg.norm(rows[usual] - rows[sample], axis=1)
        assert np.array_equal(found.indices[row], usual[np.argsort(away)[:4]])


def test_progress_and_deadline():
    rows = np.random.default_rng(6).standard_normal((400, 3))
    shares: list[float] = []
    nearest(rows, 2, progress=shares.append)
    assert sum(shares) == pytest.approx(1)
    with pytest.raises(OutOfTime, match="stopped while looking for neighbours"):
        nearest(rows, 2, deadline=lambda: True)


def test_complaints():
    rows = np.random.default_rng(7).standard_normal((20, 3))
    with pytest.raises(UsageError, match=r"k=0: must be at least 1"):
        nearest(rows, 0)
    with pytest.raises(UsageError, match=r"queries=\[20, 20\]: must be in 0..19"):
        nearest(rows, 1, queries=np.array([20]))
    with pytest.raises(UsageError, match=r"references=\[-1, 3\]: must be in 0..19"):
        nearest(rows, 1, references=np.array([3, -1]))
    with pytest.raises(UsageError, match=r"memory=10: must be at least \d+ for 20 references in 3"):
        nearest(rows, 1, memory=10)
    with pytest.raises(UsageError, match=r"width=0: must be at least 1"):
        make_space(rows, 0)
    with pytest.raises(UsageError, match=r"most=1: must be at least 2, one for each class"):
        reference_rows(np.array([0, 1, 1]), 2, 1)
    rows[4, 1] = np.nan
    with pytest.raises(UsageError, match=r"1 of 20 rows hold NaN or infinite values \(rows 4\)"):
        nearest(rows, 1)
