"""Agreement of two scores: correlations and overlaps against plain counting."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rarefy.core.errors import UsageError
from rarefy.tools.influence.agreement import agreement


def test_overall_and_per_class() -> None:
    random = np.random.default_rng(0)
    ours, theirs = random.standard_normal((2, 300))
    labels = np.arange(300) % 3
    theirs[labels == 1] = ours[labels == 1] ** 3
    theirs[labels == 2] = -ours[labels == 2]
    table = agreement(ours, theirs, labels, classes=("x", "y", "z"), top=0.1)
    assert table["class"].tolist() == ["all", "x", "y", "z"]
    assert table["n"].tolist() == [300, 100, 100, 100]
    assert table["k"].tolist() == [30, 10, 10, 10]
    assert table["spearman"][2:].tolist() == pytest.approx([1, -1])
    assert table["pearson"][2] < 1 and table["pearson"][3] == pytest.approx(-1)
    assert table["overlap"][2:].tolist() == [1.0, 0.0]
    assert table["chance"].tolist() == [0.1] * 4
    assert table["spearman"][0] == pytest.approx(stats.spearmanr(ours, theirs).statistic)
    best = set(np.argsort(ours)[-30:]) & set(np.argsort(theirs)[-30:])
    assert table["overlap"][0] == pytest.approx(len(best) / 30)


@given(
    st.lists(st.integers(0, 2), min_size=2, max_size=5),
    st.lists(st.integers(0, 2), min_size=5, max_size=5),
    st.integers(1, 4),
)
@settings(max_examples=40, deadline=None)
def test_ties_share_the_last_places(ours: list[int], theirs: list[int], k: int) -> None:
    """As the mean over all ways of breaking ties, of the two scores independently."""
    count = len(ours)
    k = min(k, count)

    def tops(values: list[int]) -> np.ndarray:
        found = [
            np.isin(np.arange(count), order[:k])
            for order in permutations(range(count))
            if all(values[order[i]] >= values[order[i + 1]] for i in range(count - 1))
        ]
        return np.mean(found, axis=0)

    expected = (tops(ours) * tops(theirs[:count])).sum() / k
    table = agreement(
        np.array(ours, dtype=float),
        np.array(theirs[:count], dtype=float),
        np.zeros(count, dtype=int),
        top=k / count,
    )
    assert table["overlap"][0] == pytest.approx(expected)


def test_undefined_and_constant_scores() -> None:
    ours = np.array([1.0, np.nan, 3.0, 4.0, 5.0])
    theirs = np.array([2.0, 1.0, np.nan, 2.0, 2.0])
    table = agreement(ours, theirs, np.array([0, 0, 0, 1, 1]), classes=["a", "b", "empty"])
    assert table["n"].tolist() == [3, 1, 2, 0]
    assert table["spearman"].isna().all()
    assert np.isnan(table["overlap"][3])
    assert table.attrs == {"without both scores": 2}


@pytest.mark.parametrize(
    ("theirs", "labels", "top", "message"),
    [
        (np.zeros(3), np.zeros(4), 0.1, r"theirs=\(3,\): must be as long as ours, \(4,\)"),
        (np.zeros(4), np.zeros(3), 0.1, r"labels=\(3,\): must be as long as ours"),
        (np.zeros(4), np.zeros(4), 0.0, "top=0.0: must be above 0 and at most 1"),
        (np.zeros(4), np.zeros(4), 1.5, "top=1.5: must be above 0"),
    ],
)
def test_bad_arguments(theirs: Any, labels: Any, top: float, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        agreement(np.zeros(4), theirs, labels, top=top)
