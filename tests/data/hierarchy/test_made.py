"""Made levels: what holds for all of them, that clusters are found, and every complaint."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_info

from rarefy.core.errors import UsageError
from rarefy.core.threads import exactly
from rarefy.data.hierarchy.clusters import filled_up
from rarefy.data.hierarchy.made import MADE, WITHIN, check_spec, kind_of, make_level, needs_features

TARGET = np.repeat(np.arange(3), 20)


def features(samples: int, width: int = 5, seed: int = 0, distinct: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((samples, width), dtype=np.float32)
    return rows[np.arange(samples) % distinct] if distinct else rows


def planted(groups: int, samples: int, width: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Groups 50 of their spreads apart, in sizes 1 : 2 : 3 : ..., in any order."""
    random = np.random.default_rng(groups)
    labels = random.permutation(np.repeat(np.arange(groups), samples * np.arange(1, groups + 1)))
    centres = 50 * np.eye(groups, width)
    rows = centres[labels] + random.standard_normal((len(labels), width))
    return rows.astype(np.float32), labels


def same_groups(first: np.ndarray, second: np.ndarray) -> bool:
    pairs = len({*zip(first.tolist(), second.tolist(), strict=True)})
    return pairs == len({*first.tolist()}) == len({*second.tolist()})


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(MADE),
    count=st.integers(2, 6),
    sizes=st.lists(st.integers(6, 30), min_size=1, max_size=4),
    distinct=st.integers(0, 8),
    seed=st.integers(0, 99),
)
def test_what_holds_for_every_level(
    kind: str, count: int, sizes: list[int], distinct: int, seed: int
) -> None:
    target = np.random.default_rng(seed).permutation(np.repeat(2 * np.arange(len(sizes)), sizes))
    rows = features(len(target), seed=seed, distinct=distinct)
    spec = kind if kind == "samples" else f"{kind}:{count}"
    labels, names = make_level(spec, target, rows if needs_features(spec) else None, seed)
    found = np.bincount(labels, minlength=len(names))
    assert labels.dtype == np.int64 and labels.shape == target.shape
    assert len(set(names)) == len(names) == len(found) and found.min() > 0
    if kind in WITHIN:
        for number in set(target.tolist()):
            mine = target == number
            inside = np.unique(labels[mine])
            # as many as asked for, or as there are distinct samples; all of this class alone
            distinct_rows = len(np.unique(rows[mine], axis=0)) if needs_features(spec) else count
            assert len(inside) == min(count, distinct_rows)
            assert [names[label] for label in inside] == [
                f"{number}/{n}" for n in range(len(inside))
            ]
            if kind == "rebalanced":
                assert found[inside].min() >= mine.sum() / len(inside) / 2
    elif kind == "kmeans":
        assert len(names) == min(count, len(np.unique(rows, axis=0)))
    else:
        assert len(names) == (count if kind == "random" else len(target))
        assert found.max() - found.min() <= 1


@pytest.mark.parametrize("spec", [f"{kind}:4" for kind in MADE[:-1]])
def test_the_seed_decides(spec: str) -> None:
    rows = features(len(TARGET))
    labels, names = make_level(spec, TARGET, rows, 7)
    again, same = make_level(spec, TARGET, rows, 7)
    assert np.array_equal(labels, again) and names == same
    assert not np.array_equal(labels, make_level(spec, TARGET, rows, 8)[0])


def test_the_number_of_threads_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums in another order rarely change a label of a few samples: so this counts threads."""
    seen: list[int] = []
    for kind in (PCA, KMeans):

        def fit(self: Any, rows: np.ndarray, fit: Any = kind.fit) -> Any:
            seen.extend(library["num_threads"] for library in threadpool_info())
            return fit(self, rows)

        monkeypatch.setattr(kind, "fit", fit)
    rows = features(200, 140)
    with exactly(3):
        several, _ = make_level("kmeans:9", rows[:, 0] > 0, rows, 0)
        assert {library["num_threads"] for library in threadpool_info()} == {3}
    assert set(seen) == {1}
    assert np.array_equal(several, make_level("kmeans:9", rows[:, 0] > 0, rows, 0)[0])


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e34])
def test_planted_clusters_are_found(scale: float) -> None:
    rows, labels = planted(6, 20)
    rows = rows * np.float32(scale)
    assert same_groups(make_level("kmeans:6", labels % 2, rows, 0)[0], labels)
    # three of the six groups lie in either target class
    assert same_groups(make_level("kmeans-within:3", labels % 2, rows, 0)[0], labels)


def test_planted_clusters_keep_their_sizes_where_they_may_and_are_filled_up_where_not() -> None:
    rows, labels = planted(3, 40)  # 40, 80, 120: mean 80, least 40
    whole = np.zeros_like(labels)
    assert same_groups(make_level("rebalanced:3", whole, rows, 0)[0], labels)
    few = np.concatenate([np.flatnonzero(labels == 0)[:4], np.flatnonzero(labels > 0)])
    filled, _ = make_level("rebalanced:3", whole[few], rows[few], 0)
    small = filled == filled[0]
    assert same_groups(make_level("kmeans-within:3", whole[few], rows[few], 0)[0], labels[few])
    assert small[:4].all() and small.sum() == 34  # half of 204 / 3
    assert np.bincount(filled).min() == 34


def test_rebalanced_moves_what_loses_least() -> None:
    rows = np.array([[0.0], [1], [2], [3], [4], [5], [6], [30]], dtype=np.float32)
    labels, _ = make_level("rebalanced:2", np.zeros(8, dtype=np.int64), rows, 0)
    assert same_groups(labels, np.array([0, 0, 0, 0, 0, 0, 1, 1]))
    # not what is nearest, but what is hardly nearer to its own
    away = np.array([[0, 3], [0, 4], [9, 10], [0, 20]], dtype=np.float32)
    assert filled_up(away, 1).tolist() == [0, 0, 1, 0]


def test_wide_features_are_reduced_and_equal_rows_stay_together() -> None:
    rows, labels = planted(6, 30, width=300)
    assert same_groups(make_level("kmeans:6", labels, rows, 0)[0], labels)
    twice = np.concatenate([rows[:150], rows[:150]])
    found, names = make_level("kmeans:150", np.zeros(300, dtype=np.int64), twice, 0)
    assert len(names) == 150 and np.array_equal(found[:150], found[150:])
    assert len(make_level("kmeans:5", labels, np.ones_like(rows), 0)[1]) == 1
    signed = np.array([[0.0, 1], [-0.0, 1], [0.0, -1]], dtype=np.float32)
    assert make_level("kmeans:3", labels[:3], signed, 0)[0].tolist() == [0, 0, 1]


def test_features_may_be_images_of_whole_numbers() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (len(TARGET), 3, 4, 4), dtype=np.uint8)
    flat = rows.reshape(len(TARGET), -1).astype(np.float32)
    for spec in ("kmeans:5", "rebalanced:2"):
        assert np.array_equal(
            make_level(spec, TARGET, rows, 0)[0], make_level(spec, TARGET, flat, 0)[0]
        )


def test_names() -> None:
    rows = features(len(TARGET))
    assert make_level("kmeans-within:2", TARGET, rows, 0)[1][-2:] == ("2/0", "2/1")
    assert make_level("kmeans:4", TARGET, rows, 0)[1][3] == "cluster 3"
    assert make_level("random:4", TARGET, None, 0)[1][3] == "id 3"
    assert make_level("samples", TARGET, None, 0)[1][-1] == "sample 59"


def test_kinds() -> None:
    specs = (
        "kmeans-within:2",
        "rebalanced:2",
        "kmeans:9",
        "random-within:2",
        "random:9",
        "samples",
    )
    assert tuple(kind_of(spec) for spec in specs) == MADE
    assert [needs_features(spec) for spec in specs] == [True] * 3 + [False] * 3
    assert kind_of("coarse") == kind_of("taxon:genus") == "given"
    assert not needs_features("coarse")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("kmean:5", "unknown made labels 'kmean'; did you mean 'kmeans'?"),
        ("kmeans", "labels='kmeans': must be kmeans with a whole number, e.g. kmeans:2"),
        ("random:ten", "labels='random:ten': must be random with a whole number"),
        ("random:-3", "labels='random:-3': must be random with a whole number"),
        ("rebalanced:1", "must be at least 2 (one per target class is the target)"),
        ("kmeans-within:0", "must be at least 2 (one per target class is the target)"),
        ("kmeans:1", "labels='kmeans:1': must be at least 2 (one teaches nothing)"),
        ("samples:5", "labels='samples:5': samples takes no number: it is one id per sample"),
    ],
)
def test_what_is_no_made_level(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        check_spec(spec)
    with pytest.raises(UsageError, match=re.escape(said)):
        make_level(spec, TARGET, features(len(TARGET)), 0)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("random:61", "labels='random:61': more clusters than samples: there are 60"),
        ("kmeans:61", "more clusters than samples: there are 60"),
        ("kmeans-within:21", "more clusters than samples: target class 0 has 20"),
        ("rebalanced:21", "more clusters than samples: target class 0 has 20"),
    ],
)
def test_more_clusters_than_samples(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_level(spec, TARGET, features(len(TARGET)), 0)


def broken(value: float) -> np.ndarray:
    rows = features(len(TARGET))
    rows[17, 2] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, "features=None: kmeans:5 needs an embedding: one row per sample"),
        (features(50), "embedding has 50 rows, the training set 60"),
        (broken(np.nan), "embedding: row 17 has a value that is not finite"),
        (broken(-np.inf), "embedding: row 17 has a value that is not finite"),
        (features(60, 0), "features='float32 (60, 0)': embedding must be numbers"),
        (features(60)[:, 0], "features='float32 (60,)': embedding must be numbers"),
        (features(60).astype(str), "(60, 5)': embedding must be numbers, (samples, features)"),
    ],
)
def test_features_that_cannot_be_used(rows: np.ndarray | None, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        make_level("kmeans:5", TARGET, rows, 0)
