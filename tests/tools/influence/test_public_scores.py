"""Published scores: made-up files of the published layouts, read, brought into order, refused."""

from __future__ import annotations

import os
import pickle
import zipfile
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rarefy.core.errors import UsageError
from rarefy.tools.influence.public_scores import agreement, in_our_order, read_public_scores

LABELS = np.array([0, 1, 2, 0, 1, 2, 2])
SCORES = np.linspace(0, 1, 7, dtype=np.float32)
NAMES = [f"n0{label}_{place}.JPEG".encode() for place, label in enumerate(LABELS)]


def _feldman_zhang(path: Path, **more: Any) -> Path:
    matrices = {f"infl_matrix_class{one}": np.zeros((2, 4)) for one in range(3)}  # not read
    np.savez(path, **{"tr_mem": SCORES, "tr_labels": LABELS, **matrices, **more})
    return path


def test_feldman_and_zhangs_layout(tmp_path: Path) -> None:
    path = _feldman_zhang(tmp_path / "cifar100_infl_matrix.npz")
    public = read_public_scores(path)
    assert public.kind == "memorisation"
    np.testing.assert_array_equal(public.scores, SCORES)
    assert public.labels.tolist() == LABELS.tolist()
    assert public.files is None


def test_c_scores_are_turned_so_that_high_is_atypical(tmp_path: Path) -> None:
    path = tmp_path / "cifar10-cscores-orig-order.npz"
    np.savez(path, scores=SCORES, labels=LABELS.astype(np.uint8))
    public = read_public_scores(path)
    assert public.kind == "c-score"
    np.testing.assert_allclose(public.scores, 1 - SCORES)


@pytest.mark.parametrize("kind", ["objects", "text", "bytes"])
def test_file_names_of_imagenet(tmp_path: Path, kind: str) -> None:
    names: Any = {
        "objects": np.array(NAMES, dtype=object),
        "text": np.array([name.decode() for name in NAMES]),
        "bytes": np.array(NAMES),
    }[kind]
    first = tmp_path / "imagenet_index.npz"
    np.savez(first, tr_mem=SCORES, tr_labels=LABELS, tr_filenames=names)
    second = tmp_path / "imagenet-cscores-with-filename.npz"
    np.savez(second, scores=SCORES, labels=LABELS, filenames=names)
    for path in (first, second):
        assert read_public_scores(path).files == tuple(name.decode() for name in NAMES)


# -------------------------------------------------------------------------------------------- order


def test_our_order_by_place(tmp_path: Path) -> None:
    public = read_public_scores(_feldman_zhang(tmp_path / "a.npz"))
    np.testing.assert_array_equal(in_our_order(public, LABELS), SCORES)
    # classes may be numbered otherwise, as long as it is always the same way
    renamed = np.array([5, 9, 7])[LABELS]
    np.testing.assert_array_equal(in_our_order(public, renamed), SCORES)


def test_another_order_is_refused(tmp_path: Path) -> None:
    public = read_public_scores(_feldman_zhang(tmp_path / "a.npz"))
    message = "only 42.9 % of its labels are those of our samples at the same place: another set"
    ours = np.array([0, 1, 2, 1, 2, 0, 0])
    with pytest.raises(UsageError, match=message):
        in_our_order(public, ours)
    with pytest.raises(UsageError, match="only 85.7 %"):  # one label that was corrected since
        in_our_order(public, np.array([0, 1, 2, 0, 1, 2, 1]))
    with pytest.raises(UsageError, match="scores of 7 samples, but there are 6 here"):
        in_our_order(public, LABELS[:6])


def test_our_order_by_file_name(tmp_path: Path) -> None:
    path = tmp_path / "imagenet_index.npz"
    np.savez(path, tr_mem=SCORES, tr_labels=LABELS, tr_filenames=np.array(NAMES, dtype=object))
    public = read_public_scores(path)
    order = [6, 0, 3]
    files = [f"train/x/{NAMES[place].decode()}" for place in order] + ["train/x/new.JPEG"]
    found = in_our_order(public, np.array([*LABELS[order], 1]), files)
    np.testing.assert_array_equal(found, [*SCORES[order], np.nan])
    with pytest.raises(UsageError, match="only 66.7 % of its labels"):
        in_our_order(public, np.array([2, 1, 0, 1]), files)
    with pytest.raises(UsageError, match="has none of our files, such as new.JPEG"):
        in_our_order(public, LABELS[:1], files[3:])
    np.savez(path, tr_mem=SCORES, tr_labels=LABELS, tr_filenames=np.array([*NAMES[:6], NAMES[0]]))
    with pytest.raises(UsageError, match="has n00_0.JPEG twice"):
        in_our_order(read_public_scores(path), LABELS, files)


# ---------------------------------------------------------------------------------------- bad files


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"memorization": SCORES}, "neither tr_mem .* nor scores .* is in it; it has memorization"),
        ({}, "it has nothing"),
        (
            {"tr_mem": SCORES},
            "has no tr_labels, without which nobody can tell whether its order is",
        ),
        ({"scores": SCORES}, "has no labels, without which"),
        ({"scores": SCORES, "labels": LABELS[:5]}, "5 labels for 7 scores"),
        (
            {"scores": SCORES[None], "labels": LABELS},
            r"scores must have 1 axes, its shape is \(1, 7\)",
        ),
        ({"scores": SCORES[:0], "labels": LABELS[:0]}, "scores must be numbers, not 0 of float32"),
        ({"scores": np.array(["a"]), "labels": LABELS}, "scores must be numbers, not 1 of <U1"),
        ({"scores": SCORES, "labels": SCORES}, "labels must be whole numbers, not 7 of float32"),
        (
            {"scores": SCORES * np.nan, "labels": LABELS},
            "scores is NaN or infinite in rows 0, 1, 2, 3",
        ),
        (
            {"scores": np.array([None] * 7), "labels": LABELS},
            "holds Python objects, which are not lo",
        ),
        (
            {"scores": SCORES, "labels": LABELS, "filenames": LABELS},
            "filenames: must be names, not i",
        ),
        (
            {"scores": SCORES, "labels": LABELS, "filenames": np.array([["a"]])},
            r"filenames: must be one name per sample, not of shape \(1, 1\)",
        ),
        (
            {"scores": SCORES, "labels": LABELS, "filenames": np.array([1, 2], dtype=object)},
            "filenames: has a int where a name belongs",
        ),
        (
            {"scores": SCORES, "labels": LABELS, "filenames": np.array(["a"])},
            "1 filenames for 7 sc",
        ),
    ],
)
def test_bad_layouts(tmp_path: Path, held: dict[str, Any], message: str) -> None:
    path = tmp_path / "scores.npz"
    np.savez(path, **held)
    with pytest.raises(UsageError, match=message):
        read_public_scores(path)


def test_damaged_files(tmp_path: Path) -> None:
    path = _feldman_zhang(tmp_path / "a.npz")
    content = path.read_bytes()
    with pytest.raises(UsageError, match="there is no file .*none.npz"):
        read_public_scores(tmp_path / "none.npz")
    for damaged in (content[:200], b"", b"nothing", content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(UsageError, match="a.npz: (damaged|no array of numpy|cannot be read)"):
            read_public_scores(path)
    middle = bytearray(content)
    middle[60:200] = bytes(140)  # in the first array: its checksum tells
    path.write_bytes(bytes(middle))
    with pytest.raises(UsageError, match="a.npz"):
        read_public_scores(path)
    single = tmp_path / "b.npy"
    np.save(single, SCORES)
    with pytest.raises(UsageError, match="is a single array, an .npz file with names is needed"):
        read_public_scores(single)


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("hacked",)


def _with_pickle(path: Path, content: bytes) -> Path:
    header = {"descr": "|O", "fortran_order": False, "shape": (1,)}
    np.savez(path, scores=SCORES[:1], labels=LABELS[:1])
    with zipfile.ZipFile(path, "a") as archive, archive.open("filenames.npy", "w") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(content)
    return path


def test_pickles_that_want_more_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.npz"
    hidden = np.array([Evil()], dtype=object)
    called = "filenames: refused, the pickle names (posix|nt|os).mkdir"
    whole = pickle.dumps(np.array(["a"], dtype=object))
    for content, message in (
        *((pickle.dumps(held), called) for held in (Evil(), [Evil()], hidden)),
        (pickle.dumps(["a"]), "refused, the pickle holds no array of objects"),
        (pickle.dumps(np.zeros(1, dtype=np.uint8)), "refused, the pickle holds no array of object"),
        (pickle.dumps(np.array(["a", "b"], dtype=object)), "2 filenames for 1 scores"),
        (whole[:-3], "filenames: (truncated|not a readable pickle)"),
        (b"cnumpy\nndarray\n}b.", "refused, the pickle wants to change"),
    ):
        with pytest.raises(UsageError, match=message):
            read_public_scores(_with_pickle(path, content))
    assert read_public_scores(_with_pickle(path, whole)).files == ("a",)
    assert not (tmp_path / "hacked").exists()


# ---------------------------------------------------------------------------------------- agreement


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
