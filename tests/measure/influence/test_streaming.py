"""Scores in pieces: however rows are cut, the numbers of one pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import OutOfTime, UsageError
from rarefy.measure.influence import streaming
from rarefy.measure.influence.passes import SCORES, score_classes
from rarefy.measure.influence.state import State
from rarefy.measure.influence.streaming import Source, groups_of, stream_scores

SAME = 1e-10
"""Of what a column has at most: what is promised. Rounding alone gives about 1e-15."""


class Kept:
    """Results in memory."""

    def __init__(self, count: int) -> None:
        self.labels = np.full(count, -1)
        self.columns = {name: np.full(count, np.nan) for name in SCORES}

    def put(self, first, labels, where, scores):
        self.labels[first + where] = labels
        for name, values in scores.items():
            self.columns[name][first + where] = values

    def flush(self):
        pass


def made_up(seed: int, count: int = 60, width: int = 5, offset: float = 0.0):
    random = np.random.default_rng(seed)
    rows = random.standard_normal((count, width)) * np.exp(random.standard_normal(width)) + offset
    labels = random.choice(4, count, p=[0.55, 0.35, 0.08, 0.02])
    return rows, labels


def cut(rows, labels, places) -> Source:
    pieces = [
        part
        for part in zip(np.split(rows, places), np.split(labels, places), strict=True)
        if len(part[0])
    ]
    sizes = [len(part[0]) for part in pieces]
    return Source(pieces, lambda piece: [piece], sizes, rows.shape[1], 4)


def the_same(found: Kept, rows, labels, ddof: int = 1) -> None:
    whole = score_classes(rows, labels, 4, ddof=ddof)
    assert np.array_equal(found.labels, labels)
    for name in SCORES:
        one, other = found.columns[name], getattr(whole, name)
        assert np.array_equal(np.isnan(one), np.isnan(other)), name
        if np.isfinite(other).any():
            # distances are made in single precision, from spreads that agree to the last digits
            allowed = SAME if name != "mahalanobis" else 1e-5
            most = np.nanmax(np.abs(other))
            assert np.nanmax(np.abs(one - other)) <= allowed * most, name


CUTS = st.lists(st.integers(0, 60), max_size=6).map(sorted)


@given(st.integers(0, 10**6), CUTS, st.sampled_from([0.0, 1e6]), st.integers(0, 1))
def test_however_rows_are_cut(seed, places, offset, ddof):
    rows, labels = made_up(seed, offset=offset)
    source, found = cut(rows, labels, places), Kept(60)
    counts, _ = stream_scores(source, found, ddof=ddof)
    assert np.array_equal(counts, np.bincount(labels, minlength=4))
    the_same(found, rows, labels, ddof)


def test_classes_go_in_groups_where_memory_is_short():
    rows, labels = made_up(1)
    each = 5 * (12 * 5 + 40)
    assert groups_of(4, 5, 4 * each) == [range(2), range(2, 4)]
    found = Kept(60)
    stream_scores(cut(rows, labels, [20, 41]), found, memory=2 * each)
    the_same(found, rows, labels)
    with pytest.raises(UsageError, match=f"memory={each}: must be at least {2 * each} for 5 fea"):
        stream_scores(cut(rows, labels, [20]), found, memory=each)


def test_stopped_after_every_piece_it_goes_on_with_the_same_bits(tmp_path):
    rows, labels = made_up(2)
    source, memory = cut(rows, labels, [13, 29, 44]), 5 * 5 * (12 * 5 + 40)
    whole, found, told = Kept(60), Kept(60), []
    stream_scores(source, whole, memory=memory)
    for _stops in range(99):
        state, told = State(tmp_path / "s", {"data": "a"}, lambda: True), []
        try:
            stream_scores(source, found, memory=memory, state=state, progress=told.append)
            break
        except OutOfTime:
            pass
    assert _stops == 2 * (4 + 3) and sum(told) == pytest.approx(1)
    for name in SCORES:
        assert np.array_equal(found.columns[name], whole.columns[name], equal_nan=True)
    with pytest.raises(UsageError, match="was begun with data 'a', now it is 'b'"):
        stream_scores(source, found, state=State(tmp_path / "s", {"data": "b"}))


def test_what_is_not_finite_is_named_by_its_row():
    rows, labels = made_up(3)
    rows[47, 1] = np.inf
    with pytest.raises(UsageError, match=r"1 of 31 rows hold NaN or infinite values \(rows 47\)"):
        stream_scores(cut(rows, labels, [29]), Kept(60))
    with pytest.raises(UsageError, match="so large that their fourth powers are not"):
        stream_scores(cut(rows[:40] * 1e90, labels[:40], [29]), Kept(40))


def test_wide_features_have_no_mahalanobis_distance(monkeypatch):
    rows, labels = made_up(4)
    monkeypatch.setattr(streaming, "FULL_WIDTH", 4)
    found = Kept(60)
    stream_scores(cut(rows, labels, [30]), found)
    assert np.isnan(found.columns["mahalanobis"]).all()
    expected = score_classes(rows, labels, 4).influence
    assert np.allclose(found.columns["influence"], expected, rtol=SAME, equal_nan=True)
