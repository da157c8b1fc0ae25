"""The score of samples outside the data equals what it is once they are inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.measure.influence.held_out import score_held_out


@given(st.integers(0, 10**6), st.integers(0, 1), st.sampled_from([0.0, 1e6]))
def test_equal_to_the_score_after_joining(brute_force, seed, ddof, offset):
    random = np.random.default_rng(seed)
    features = random.standard_normal((20, 3)) + offset
    labels = random.integers(0, 3, 20)
    rows, theirs = random.standard_normal((4, 3)) * 2 + offset, random.integers(0, 4, 4)
    found = score_held_out(features, labels, rows, theirs, 4, ddof=ddof)
    for i in range(4):
        together = np.concatenate([features, rows[i : i + 1]])
        expected, norms = brute_force(together, np.append(labels, theirs[i]), 4, ddof)
        allowed = 1e-9 * norms[theirs[i]]
        if np.isnan(expected[-1]):
            assert np.isnan(found.influence[i])
        else:
            assert abs(found.influence[i] - expected[-1]) <= allowed
            total = found.own[i] + found.shared[i] + found.shrinking[i]
            assert total == pytest.approx(found.influence[i], rel=1e-12, abs=allowed)


def test_scale_enters_with_its_fourth_power():
    random = np.random.default_rng(0)
    features, labels = random.integers(0, 256, (30, 4), dtype=np.uint8), np.arange(30) % 2
    plain = score_held_out(features[:20], labels[:20], features[20:], labels[20:], 2)
    halved = score_held_out(features[:20], labels[:20], features[20:], labels[20:], 2, scale=0.5)
    assert np.allclose(halved.influence, plain.influence / 16, rtol=1e-14)


def test_complaints():
    features, labels = np.random.default_rng(0).standard_normal((9, 4)), np.arange(9) % 3
    for rows, theirs, options, message in (
        (features[:, :2], labels, {}, r"rows=\(9, 2\): must have 4 columns"),
        (features, labels + 1, {}, r"labels=3: must be in 0..2"),
        (features, labels, {"ddof": 3}, r"ddof=3: must be 0 or 1"),
        (features, labels, {"memory": 5}, r"memory=5: must be at least \d+ for a width of 4"),
    ):
        with pytest.raises(UsageError, match=message):
            score_held_out(features, labels, rows, theirs, 3, **options)
    broken = features.copy()
    broken[2] = np.nan
    for data, rows in ((features, broken), (broken, features)):
        with pytest.raises(UsageError, match=r"1 of 9 rows hold NaN or infinite values \(rows 2\)"):
            score_held_out(data, labels, rows, labels, 3)
