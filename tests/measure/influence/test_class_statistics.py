"""Statistics of classes: any split and any order give the same; what is on disk; overlaps (B12)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import RunError, UsageError
from rarefy.measure.influence.class_statistics import (
    ClassStatistics,
    covariance_overlaps,
    gather_statistics,
    read_arrays,
    write_arrays,
)

SAME = 1e-12
"""Relative to the norm of a scatter matrix or to the spread: a few hundred roundings of float64."""


def made_up(seed: int, count: int = 40, width: int = 4, offset: float = 0.0):
    random = np.random.default_rng(seed)
    rows = random.standard_normal((count, width)) * [1.0, 3.0, 0.1, 2.0][:width] + offset
    return rows, random.integers(0, 3, count)


def the_same(first: ClassStatistics, second: ClassStatistics) -> None:
    assert np.array_equal(first.counts, second.counts)
    for label in np.flatnonzero(first.counts):
        norm = np.linalg.norm(first.scatter(label))
        assert np.linalg.norm(first.scatter(label) - second.scatter(label)) <= SAME * norm
        spread = np.sqrt(norm)
        # a mean can be no better than its last digit
        away = np.abs(first.means[label] - second.means[label]).max()
        assert away <= SAME * spread + 1e-15 * np.abs(first.means[label]).max()


@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([0.0, 1e6]))
def test_any_split_and_order_give_the_same(seed, pieces, offset):
    rows, labels = made_up(seed, offset=offset)
    whole = gather_statistics(rows, labels, 4)
    random = np.random.default_rng(seed + 1)
    order = random.permutation(len(rows))
    parts = ClassStatistics(4, 4)
    for piece in np.array_split(order, np.sort(random.integers(0, len(rows), pieces))):
        for label in range(3):
            mine = rows[piece[labels[piece] == label]]
            parts.add_class(label, torch.from_numpy(mine))
    the_same(whole, parts)


def test_against_numpy():
    rows, labels = made_up(0)
    found = gather_statistics(rows.astype(np.float32), labels, 4)
    rows = rows.astype(np.float32).astype(np.float64)
    for label in range(3):
        mine = rows[labels == label]
        assert np.allclose(found.means[label], mine.mean(axis=0), rtol=1e-14)
        expected = np.cov(mine, rowvar=False) * (len(mine) - 1)
        assert np.allclose(found.scatter(label), expected, rtol=1e-12, atol=1e-13)
    assert found.counts[3] == 0 and np.isnan(found.means[3]).all()
    assert (found.scatter(3) == 0).all()


def test_arrays_keep_every_bit_and_others_are_refused(tmp_path):
    first = gather_statistics(*made_up(1), 3)
    path = tmp_path / "deep" / "x.npz"
    write_arrays(path, first.arrays())
    again = ClassStatistics.from_arrays(read_arrays(path), path)
    assert np.array_equal(first.counts, again.counts)
    assert np.array_equal(first.means, again.means)
    for label in range(3):
        assert np.array_equal(first.scatter(label), again.scatter(label))
    assert [found.name for found in path.parent.iterdir()] == ["x.npz"]
    for wrong in ({"counts": np.zeros(2)}, {**first.arrays(), "scatters": np.zeros((3, 4, 5))}):
        with pytest.raises(RunError, match=r"x\.npz does not hold class statistics"):
            ClassStatistics.from_arrays(wrong, path)
    path.write_bytes(b"PK nothing")
    for unreadable in (path, tmp_path / "none.npz"):
        with pytest.raises(RunError, match=r"cannot read .*\.npz"):
            read_arrays(unreadable)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*shard\.npz"):
        write_arrays(tmp_path / "file" / "shard.npz", first.arrays())


@pytest.mark.parametrize("ddof", [0, 1])
def test_overlaps_are_traces_of_products_of_covariances(ddof):
    rows, labels = made_up(2)
    found = covariance_overlaps(gather_statistics(rows, labels, 4), ddof, scale=0.5)
    for i in range(3):
        for j in range(3):
            one, two = (np.cov(rows[labels == k], rowvar=False, ddof=ddof) / 4 for k in (i, j))
            assert found[i, j] == pytest.approx(np.trace(one @ two), rel=1e-12)
    assert np.isnan(found[3]).all() and np.isnan(found[:, 3]).all()


def test_complaints():
    rows, labels = made_up(0)
    with pytest.raises(UsageError, match=r"classes=0: must be at least 1"):
        ClassStatistics(0, 3)
    with pytest.raises(UsageError, match=r"width=0: must be at least 1"):
        ClassStatistics(3, 0)
    with pytest.raises(UsageError, match=r"ddof=2: must be 0 or 1"):
        covariance_overlaps(ClassStatistics(1, 1), 2)
    with pytest.raises(UsageError, match=r"memory=1000: must be at least \d+ for 3 classes of wid"):
        gather_statistics(rows, labels, 3, memory=1000)
    rows[7, 2] = np.inf
    with pytest.raises(UsageError, match=r"1 of 40 rows hold NaN or infinite values \(rows 7\)"):
        gather_statistics(rows, labels, 3)
