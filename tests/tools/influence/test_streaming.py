"""Influence in pieces: the columns of ``rarefy.influence``, from whatever can be read so."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rarefy
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.measure.influence.passes import SCORES
from rarefy.tools.influence import scoring, streaming
from rarefy.tools.influence.writing import read_table
from rarefy.tools.samples import chunks, tables
from rarefy.tools.samples.standardizing import ColumnMoments

COLUMNS = ("percentile", *SCORES)


@pytest.fixture(scope="module")
def made() -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    random = np.random.default_rng(0)
    rows = (random.standard_normal((500, 6)) * [1, 9, 1, 0.1, 1, 0] + 3).astype(np.float32)
    labels = random.choice(["ash", "oak", "elm"], 500)
    labels[[3, 99]], labels[7] = "yew", "fir"
    return rows, labels, rarefy.influence(rows, labels, neighbours=0, check_labels=False)


def the_same(found: pd.DataFrame, whole: pd.DataFrame) -> None:
    assert list(found["index"]) == list(range(len(whole)))
    assert list(found["label"]) == list(whole["label"])
    for name in COLUMNS:
        one, other = found[name].to_numpy(), whole[name].to_numpy()
        assert np.array_equal(np.isnan(one), np.isnan(other)), name
        allowed = 1e-5 if name == "mahalanobis" else 1e-10  # the former is in single precision
        assert np.nanmax(np.abs(one - other)) <= allowed * np.nanmax(np.abs(other)), name


def test_every_kind_of_data_gives_the_same_table(made, tmp_path, monkeypatch) -> None:
    rows, labels, whole = made
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 4000)
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "labels.npy", labels)
    frame = pd.DataFrame(rows, columns=list("abcdef")).assign(kind=labels, words="w")
    (tmp_path / "many").mkdir()
    frame.to_parquet(tmp_path / "one.parquet", row_group_size=180)
    frame[:200].to_parquet(tmp_path / "many" / "a.parquet", row_group_size=70)
    frame[200:].to_parquet(tmp_path / "many" / "b.parquet")
    listed = pd.DataFrame({"vector": list(rows), "label": labels})
    listed.to_parquet(tmp_path / "lists.parquet")
    pairs = [(rows[:120], labels[:120]), (torch.tensor(rows[120:]), list(labels[120:]))]
    for given_ in (
        (rows, labels),
        (tmp_path / "x.npy", labels),
        (tmp_path / "x.npy",),
        (np.load(tmp_path / "x.npy", mmap_mode="r"), labels),
        (pairs,),
        (lambda: iter(pairs),),
        (tmp_path / "lists.parquet",),
    ):
        the_same(rarefy.stream_influence(*given_).table, whole)
    for name in ("one.parquet", "many"):
        found = rarefy.stream_influence(str(tmp_path / name), label="kind")
        the_same(found.table, whole)
        assert any("columns that are no numbers are not scored: words" in n for n in found.notes)
    plain = rarefy.influence(rows, labels, neighbours=0, check_labels=False, standardize=False)
    the_same(rarefy.stream_influence(pairs, standardize=False).table, plain)
    names = ("ash", "elm", "fir", "oak", "yew")
    assert found.classes == names and len(found) == 500
    for name, row in zip(names, found.highest, strict=True):
        mine = whole[whole["label"] == name]["influence"]
        assert row == (mine.idxmax() if mine.notna().any() else -1)


def test_dask_arrays(made) -> None:
    rows, labels, whole = made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (of a package that imports another's old names)
        import dask.array as da
    data, known = da.from_array(rows, chunks=(90, 4)), da.from_array(labels, chunks=200)
    the_same(rarefy.stream_influence(data, known).table, whole)
    the_same(rarefy.stream_influence(data, labels).table, whole)
    for wrong, y, message in (
        (da.ones((2, 3, 4)), labels, "must be .n, d. to be read in pieces"),
        (data[data[:, 0] > 3], labels, "blocks of unknown sizes': call compute_chunk_sizes"),
        (data, None, "labels=None: must be given"),
        (data, known[:30], r"labels=\(30,\): must be \(500,\), one per sample"),
    ):
        with pytest.raises(UsageError, match=message):
            rarefy.stream_influence(wrong, y)


def test_a_file_is_written_and_a_stopped_call_goes_on(made, tmp_path, monkeypatch) -> None:
    rows, labels, whole = made
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 4000)
    monkeypatch.setattr(streaming, "WRITTEN", 128)
    path, stops = tmp_path / "scores.parquet", 0
    while not path.exists():
        try:
            found = rarefy.stream_influence(rows, labels, out=path, deadline=time.monotonic())
        except OutOfTime as error:
            assert f"goes on from {tmp_path / '.scores.parquet.unfinished'}" in str(error)
            stops += 1
    assert stops == 7 and found.table is None
    with pytest.raises(OutOfTime):
        rarefy.stream_influence(rows, labels, out=tmp_path / "o.parquet", deadline=0.0)
    with pytest.raises(UsageError, match="was begun with data .*; overwrite begins anew"):
        rarefy.stream_influence(rows[1:], labels[1:], out=tmp_path / "o.parquet")
    rarefy.stream_influence(rows[1:], labels[1:], out=tmp_path / "o.parquet", overwrite=True)
    (tmp_path / "o.parquet").unlink()
    written = read_table(path)
    the_same(written, whole)
    assert written.attrs["features"] == 6 and written.attrs["counts"] == found.counts.tolist()
    assert sorted(one.name for one in tmp_path.iterdir()) == [".rarefy", "scores.parquet"]
    rarefy.stream_influence(rows, labels, out=path)
    with pytest.raises(UsageError, match="was written by: .*; pass --overwrite to replace it"):
        rarefy.stream_influence(rows[:300], labels[:300], out=path)
    rarefy.stream_influence(rows[:300], labels[:300], out=path, overwrite=True)
    assert len(read_table(path)) == 300


def test_percentiles_are_left_out_where_they_do_not_fit(made, monkeypatch) -> None:
    rows, labels, _ = made
    monkeypatch.setattr(streaming, "BYTES", 1 << 22)
    found = rarefy.stream_influence(rows, labels)
    assert found.table["percentile"].isna().all() and found.table["influence"].notna().any()
    assert any(note.startswith("percentile needs 2,097,") for note in found.notes)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 50), max_size=4).map(sorted))
def test_moments_of_columns_however_they_are_cut(seed, places) -> None:
    random = np.random.default_rng(seed)
    rows = random.standard_normal((50, 3)) * [1, 1e-3, 0] + [0, 1e3, 5]
    parts = [ColumnMoments() for _ in range(len(places) + 1)]
    for part, some in zip(parts, np.split(rows, places), strict=True):
        part.add(some)
    merged = ColumnMoments()
    for place in random.permutation(len(parts)):
        merged.merge(parts[place])
    assert np.allclose(merged.mean, rows.mean(axis=0), rtol=1e-13, atol=1e-13)
    assert np.allclose(merged.divisor(), [*rows.std(axis=0)[:2], 1.0], rtol=1e-10)


X, Y = np.ones((4, 2)), np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"data": "t.csv"}, "t.csv: cannot be read in pieces; a .npy file, a Parquet file or a fo"),
        ({"data": "none.parquet"}, "there is no file none.parquet"),
        ({"data": "empty"}, "empty: holds no Parquet file"),
        ({"data": "t.parquet", "label": "kin"}, "label='kin': no such column in t.parquet; did"),
        ({"data": "t.parquet", "label": "kind", "columns": ["z"]}, "columns='z': no such column"),
        ({"data": "bad.parquet"}, "bad.parquet: cannot be read as a table"),
        ({"data": X}, "labels=None: must be given: one label per sample"),
        ({"data": X, "labels": Y[:3]}, "labels='3 labels': must be 4, one per sample"),
        ({"data": X, "labels": Y, "label": "a"}, "label='a': does not fit what is no table"),
        ({"data": X[None], "labels": Y}, "must be .n, d. to be read in pieces"),
        ({"data": X, "labels": Y * 0}, "all samples have the label '0': at least 2 classes"),
        ({"data": X, "labels": Y, "ddof": 2}, "ddof=2: must be 0 or 1"),
        ({"data": X, "labels": Y, "out": "x.csv"}, "out='x.csv': must end in .parquet"),
        ({"data": iter([])}, "is read several times: give a list, or a function"),
        ({"data": []}, "chunks: there are no samples"),
        ({"data": [(X, Y)], "labels": Y}, "does not fit pairs, which have theirs"),
        ({"data": [3]}, "data='int': must be pairs of features and labels"),
        ({"data": [(X, Y), (X, Y[:2])]}, "after row 4: labels='2 labels': must be 4, one per row"),
        ({"data": [(X, Y), (X[:, :1], Y)]}, "rows from 4 on have 1 features, not 2"),
        ({"data": [(X, ["a", "", "b", "a"])]}, "labels: some are empty"),
        ({"data": X * np.nan, "labels": Y}, "arrays: column 0 holds NaN or infinite values"),
        ({"data": X * np.inf, "labels": Y, "standardize": False}, "4 of 4 rows hold NaN or infin"),
    ],
)
def test_complaints(given_, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [1.0, 2.0], "kind": ["x", "y"]}).to_parquet("t.parquet")
    Path("bad.parquet").write_bytes(b"PAR1 no")
    Path("empty").mkdir()
    with pytest.raises(UsageError, match=message):
        rarefy.stream_influence(**given_)
    assert not list(tmp_path.glob(".*"))


def test_data_that_change_while_they_are_read_are_refused() -> None:
    turn = iter("abcdef")
    with pytest.raises(UsageError, match="chunks: the data changed while they were read: a new la"):
        rarefy.stream_influence(lambda: [(X, [next(turn), "x", "x", "x"])])
    random, sizes, labels = np.random.default_rng(0), iter([9, 9, 8]), [0, 1, 1, 0, 0, 1, 1, 0, 1]
    rows = random.standard_normal((9, 2))

    def fewer():
        size = next(sizes)
        return [(rows[:size], labels[:size])]

    for pairs in (lambda: [(random.standard_normal((9, 2)), labels)], fewer):
        with pytest.raises(UsageError, match="changed while they were read: each reading must"):
            rarefy.stream_influence(pairs)


def test_what_needs_too_much_memory_is_said_before(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(scoring, "free_memory", lambda device: 1000)
    many = (
        r"arrays: ids, copies, neighbours, the label check, triage and the page of 4 samples take"
    )
    with pytest.raises(UsageError, match=many + r" about 2.8 kB of memory, 1.0 kB are free; --str"):
        rarefy.influence(X, Y)
    monkeypatch.setattr(tables, "free_memory", lambda device: 10)
    pd.DataFrame({"a": [1.0, 2.0], "label": ["x", "y"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        UsageError, match=r"10 bytes are free; rarefy influence --stream reads Parq"
    ):
        rarefy.influence(tmp_path / "t.parquet")
