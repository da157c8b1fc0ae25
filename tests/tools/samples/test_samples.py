"""Samples: parts of them, ids from content, copies, and features that are no numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.data.images import ImageSet, load_images
from rarefy.data.images.ids import content_ids, digest_of
from rarefy.tools.samples.arrays import from_arrays
from rarefy.tools.samples.row_ids import copies_of, row_ids
from rarefy.tools.samples.samples import Samples


def _made(count: int = 6, width: int = 3, **about: Any) -> Samples:
    random = np.random.default_rng(0)
    return from_arrays(random.standard_normal((count, width)), np.arange(count) % 2, **about)


def test_take_keeps_names_pictures_and_ids() -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 1, 2, 2), dtype=np.uint8)
    samples = from_arrays(images, [0, 1] * 3, names=list("abcdef"))
    part = samples.take([4, 1])
    assert part.files == ("e", "b")
    assert part.labels.tolist() == [0, 1]
    assert part.ids == (samples.ids[4], samples.ids[1])
    assert part.images is not None
    assert (part.images(1) == images[1, 0]).all()
    assert (part.take(np.array([False, True])).features == samples.features[[1]]).all()
    assert samples.take(slice(2, 4)).ids == samples.ids[2:4]
    assert samples.take(slice(None, None, -1)).files == tuple("fedcba")
    assert samples.counts.tolist() == [3, 3]
    assert repr(part) == "Samples('arrays', 2 samples of 4 features, 2 classes)"


def test_take_of_copies_does_not_rename_them() -> None:
    samples = from_arrays(np.array([[1.0], [1.0], [2.0]]), [0, 1, 1])
    assert samples.take([1]).ids == (f"{samples.ids[0]}-1",)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([6], r"rows=\[6, 6\]: must be from 0 to 5"),
        ([-1], r"rows=\[-1, -1\]: must be from 0 to 5"),
        ([0.5], r"rows='float64 \(1,\)': must be whole numbers \(k,\), at least one"),
        ([], "at least one"),
        ([[0]], r"rows='int64 \(1, 1\)'"),
        (np.array([True]), r"rows=\(1,\): a mask must be \(6,\)"),
        (slice(3, 3), "at least one"),
    ],
)
def test_bad_rows_are_told(rows: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _made().take(rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.zeros((0, 2))}, r"features='float64 \(0, 2\)': must be real numbers"),
        ({"features": np.zeros(6)}, r"features='float64 \(6,\)'"),
        ({"labels": np.zeros(5, dtype=np.int64)}, r"labels='int64 \(5,\)': must be int64 \(6,\)"),
        ({"labels": np.full(6, 2)}, r"labels=\[2, 2\]: must be from 0 to 1"),
        ({"files": ("a",)}, r"names='1 name': must be 6, one per sample"),
        ({"feature_names": ("a",)}, r"feature_names='1 name': must be 3, one per feature"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], message: str) -> None:
    fitting: dict[str, Any] = {
        "name": "made",
        "features": np.zeros((6, 3)),
        "labels": np.zeros(6, dtype=np.int64),
        "classes": ("a", "b"),
    }
    Samples(**fitting)
    with pytest.raises(UsageError, match=message):
        Samples(**{**fitting, **changes})


# ---------------------------------------------------------------------------------------------- ids


@given(st.integers(0, 2**32 - 1), st.sampled_from(["uint8", "float16", "float32", "int64"]))
@settings(max_examples=30, deadline=None)
def test_ids_follow_the_samples_in_any_order(seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    features = random.integers(0, 3, (20, 2)).astype(kind)  # so few values that there are copies
    labels = random.integers(0, 2, 20)
    ids = row_ids(features, labels)
    order = random.permutation(20)
    again = row_ids(features[order], labels[order])
    assert len(set(ids)) == 20
    pairs = [
        sorted(zip(some, marks.tolist(), strict=True))
        for some, marks in ((ids, labels), (again, labels[order]))
    ]
    assert pairs[0] == pairs[1]
    for one, row in zip(ids, features, strict=True):
        for other, its in zip(ids, features, strict=True):
            assert (digest_of(one) == digest_of(other)) == (row == its).all()


def test_the_same_numbers_have_one_id_whatever_their_type() -> None:
    one, zero = np.array([[1, 7]], dtype=np.uint8), np.zeros(1, dtype=np.int64)
    kinds = ("u1", "i1", ">i2", "<i8", "f2", ">f4", "<f4", ">f8", "<f8")
    assert len({row_ids(one.astype(kind), zero)[0] for kind in kinds}) == 1
    others = [one, one.view(np.uint16), one[:, :1], one[:, ::-1], one + 0.5]
    assert len({row_ids(rows, zero)[0] for rows in others}) == len(others)
    # pixels are no mere numbers: their shape counts, as in an ImageSet
    assert row_ids(one, zero, (1, 1, 2)) != row_ids(one, zero)


def test_an_image_has_one_id_wherever_its_channels_lie() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 4, 6), dtype=np.uint8)
    labels = [0, 1, 0, 1, 0]
    tensor = torch.from_numpy(images)
    expected = content_ids(tensor, torch.tensor(labels))
    assert ImageSet(tensor, torch.tensor(labels), ("a", "b")).ids == expected
    last = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    for given_images in (images, last, tensor):
        assert from_arrays(given_images, labels).ids == expected
    grey = images[:, 0]
    assert from_arrays(grey, labels).ids == content_ids(tensor[:, :1], torch.tensor(labels))


def test_built_in_images_given_as_an_array_have_their_ids() -> None:
    train = load_images("digits").train
    assert from_arrays(train.images, train.labels).ids == train.ids


def test_ids_do_not_depend_on_chunks_or_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.random.default_rng(0).standard_normal((50, 7))
    labels = np.zeros(50, dtype=np.int64)
    ids = row_ids(features, labels)
    assert row_ids(np.asfortranarray(features), labels) == ids
    monkeypatch.setattr("rarefy.tools.samples.row_ids.CHUNK_BYTES", 100)
    assert row_ids(features, labels) == ids


def test_ids_of_a_memory_map(tmp_path: Path) -> None:
    path = tmp_path / "features.npy"
    rows = np.random.default_rng(0).standard_normal((2_000, 64), dtype=np.float32)
    np.save(path, rows)
    labels = np.zeros(2_000, dtype=np.int64)
    ids = row_ids(np.load(path, mmap_mode="r"), labels)
    assert ids == row_ids(rows, labels) and len(set(ids)) == 2_000


def test_copies_and_conflicts() -> None:
    features = np.array([[1.0], [2.0], [1.0], [3.0], [2.0], [1.0]])
    labels = np.array([0, 0, 0, 1, 1, 0])
    found = copies_of(row_ids(features, labels), labels)
    assert found.copies.tolist() == [2, 1, 2, 0, 1, 2]
    assert found.conflict.tolist() == [False, True, False, False, True, False]


def test_copies_are_found_in_a_part_whose_first_one_is_gone() -> None:
    labels = np.array([0, 0, 1])
    samples = from_arrays(np.array([[1.0], [1.0], [1.0]]), labels)
    part = samples.take([1, 2])
    assert copies_of(part.ids, part.labels).copies.tolist() == [1, 1]
    assert copies_of(part.ids, part.labels).conflict.tolist() == [True, True]
    assert copies_of(samples.take([0]).ids, labels[:1]).copies.tolist() == [0]


def test_fingerprint_is_of_content_and_labels_not_of_order() -> None:
    samples = _made()
    assert samples.take([5, 4, 3, 2, 1, 0]).fingerprint == samples.fingerprint
    other = from_arrays(samples.features, [1, 0, 0, 1, 0, 1])
    assert other.fingerprint != samples.fingerprint


# ----------------------------------------------------------------------------------------- finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_rows_that_are_no_numbers_are_named(
    bad: float, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rarefy.tools.samples.samples.CHUNK_BYTES", 64)
    features = np.ones((40, 3), dtype=kind)
    from_arrays(features, np.arange(40) % 2).check_finite()
    features[[7, 30], [0, 2]] = bad
    with pytest.raises(
        UsageError, match=r"arrays: .* NaN or infinite in rows 7, 30 .*, of 40 samples"
    ):
        from_arrays(features, np.arange(40) % 2).check_finite()


def test_huge_numbers_and_whole_ones_are_finite() -> None:
    from_arrays(np.full((4, 2), 1e308), [0, 1, 0, 1]).check_finite()
    from_arrays(np.full((4, 2), 65504, dtype=np.float16), [0, 1, 0, 1]).check_finite()
    from_arrays(np.ones((4, 2), dtype=np.int64), [0, 1, 0, 1]).check_finite()
