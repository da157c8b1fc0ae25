"""Arrays, tensors, lists, memory maps and .npz files as samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.tools.samples.arrays import from_arrays, from_npy, from_npz

Y = [0, 1, 1, 0]


def test_makes_of_features() -> None:
    rows = [[1, 2], [3, 4], [5, 6], [7, 8]]
    for given in (rows, np.array(rows), torch.tensor(rows), pd.DataFrame(rows, columns=["a", "b"])):
        samples = from_arrays(given, Y)
        assert samples.features.tolist() == rows
        assert samples.scale == 1.0
        assert samples.images is None
    assert samples.feature_names == ("a", "b")


def test_no_memory_is_copied() -> None:
    array = np.zeros((4, 2, 3), dtype=np.float32)
    assert np.shares_memory(from_arrays(array, Y).features, array)
    tensor = torch.zeros(4, 6, requires_grad=True)
    assert np.shares_memory(from_arrays(tensor, Y).features, tensor.detach().numpy())


def test_odd_types_become_numbers() -> None:
    assert from_arrays(torch.ones(4, 2, dtype=torch.bfloat16), Y).features.dtype == np.float32
    flags = from_arrays(np.eye(4, dtype=bool), Y)
    assert flags.features.tolist() == np.eye(4).tolist()
    assert flags.images is None and flags.scale == 1.0
    assert from_arrays(np.ones((4, 3), dtype=np.float16), Y).features.dtype == np.float16


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_images_have_pictures_wherever_their_channels_are(kind: str) -> None:
    random = np.random.default_rng(0)
    first = random.integers(0, 256, (4, 3, 5, 6)).astype(kind)
    if kind == "float32":
        first /= 255
    last = np.ascontiguousarray(first.transpose(0, 2, 3, 1))
    expected = np.rint(first[2] * (255 if kind == "float32" else 1)).astype(np.uint8)
    for images, is_last in ((first, False), (last, True)):
        samples = from_arrays(images, Y)
        assert samples.image == (3, 5, 6)
        assert samples.channels_last is is_last
        assert samples.features.shape == (4, 90)
        assert samples.scale == (1 / 255 if kind == "uint8" else 1.0)
        assert samples.notes == ()
        assert samples.images is not None
        assert (samples.images(2) == expected.transpose(1, 2, 0)).all()
        assert samples.images(2).dtype == np.uint8


def test_grey_and_transparent_and_undecided_images() -> None:
    grey = from_arrays(np.full((4, 5, 6), 7, dtype=np.uint8), Y)
    assert grey.image == (1, 5, 6)
    assert grey.images is not None and grey.images(0).shape == (5, 6)
    clear = from_arrays(np.zeros((4, 5, 6, 4), dtype=np.uint8), Y)
    assert clear.images is not None and clear.images(0).shape == (5, 6, 3)
    unclear = from_arrays(np.zeros((4, 3, 5, 3), dtype=np.uint8), Y)
    assert unclear.image == (3, 5, 3) and "taken for channels" in unclear.notes[0]
    spectral = from_arrays(np.zeros((4, 7, 5, 9), dtype=np.uint8), Y)
    assert spectral.image is None and spectral.scale == 1.0
    series = from_arrays(np.zeros((4, 7, 3)), Y)
    assert series.image is None and series.features.shape == (4, 21)


def test_pictures_of_normalised_and_broken_images() -> None:
    images = np.zeros((4, 1, 2, 2))
    images[0] = [[-2, 2], [0, 0]]
    images[1] = np.nan
    images[2] = 3.0
    see = from_arrays(images, Y).images
    assert see is not None
    assert see(0).tolist() == [[0, 255], [128, 128]]
    assert see(1).shape == see(2).shape == (2, 2)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(4), r"X='shape \(4,\)': must be \(n, d\), one row per sample"),
        (np.float64(3), r"X='shape \(\)'"),
        (np.zeros((0, 3)), "there are no samples"),
        (np.zeros((4, 0)), r"X='shape \(4, 0\)': has no features"),
        (np.array([["a", "b"]] * 4), r"X='text \(<U1\)': features must be real numbers"),
        (np.array([[None, 1]] * 4), r"X='Python objects \(object\)': features must be real"),
        (np.zeros((4, 2), dtype=complex), r"X='complex numbers \(complex128\)'"),
        ([[1, 2], [3]], r"X='rows of different lengths': must all have the same length"),
        (pd.DataFrame({"a": ["x"] * 4}), r"features must be real numbers"),
    ],
)
def test_bad_features_are_told(X: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_arrays(X, Y)


def test_sparse_rows_and_wrong_lengths() -> None:
    from scipy import sparse

    with pytest.raises(UsageError, match=r"X='csr_.*': is sparse; give X.toarray\(\)"):
        from_arrays(sparse.csr_array(np.eye(4)), Y)
    with pytest.raises(UsageError, match="labels='3 labels': must be 4"):
        from_arrays(np.zeros((4, 2)), Y[:3])
    with pytest.raises(UsageError, match="names='1 name': must be 4"):
        from_arrays(np.zeros((4, 2)), Y, names=["a"])


# ------------------------------------------------------------------------------------------- files


def test_npy_files_stay_on_disk(tmp_path: Path) -> None:
    features, labels = tmp_path / "faces.npy", tmp_path / "labels.npy"
    np.save(features, np.arange(48, dtype=np.uint8).reshape(4, 3, 2, 2))
    np.save(labels, np.array(["b", "a", "a", "b"]))
    samples = from_npy(features, labels)
    assert isinstance(samples.features, np.memmap)
    assert not samples.features.flags.writeable
    assert (samples.name, samples.classes) == ("faces", ("a", "b"))
    assert samples.image == (3, 2, 2)
    assert isinstance(samples.take(slice(1, 3)).features, np.memmap)
    assert samples.ids == from_arrays(np.load(features), np.load(labels)).ids
    np.save(features, np.asfortranarray(np.zeros((4, 3))))
    assert isinstance(from_npy(features, labels).features, np.memmap)
    np.save(features, np.asfortranarray(np.zeros((4, 3, 2))))
    with pytest.raises(UsageError, match=r"a memory map of shape .* must be stored in C order"):
        from_npy(features, labels)


def test_bad_npy_files(tmp_path: Path) -> None:
    good = tmp_path / "good.npy"
    np.save(good, np.zeros((4, 2)))
    with pytest.raises(UsageError, match="there is no file .*none.npy"):
        from_npy(tmp_path / "none.npy", good)
    with pytest.raises(UsageError, match="is a folder, a file is needed"):
        from_npy(tmp_path, good)
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([None, 1], dtype=object), allow_pickle=True)
    with pytest.raises(UsageError, match="objects.npy: holds Python objects, which are not loaded"):
        from_npy(objects, good)
    cut = tmp_path / "cut.npy"
    cut.write_bytes(good.read_bytes()[:-9])
    with pytest.raises(UsageError, match="cut.npy: damaged, or no file of numpy"):
        from_npy(cut, good)
    cut.write_bytes(b"nothing of the kind")
    with pytest.raises(UsageError, match="cut.npy: no array of numpy, or a pickle"):
        from_npy(cut, good)
    several = tmp_path / "several.npz"
    np.savez(several, a=np.zeros(3))
    with pytest.raises(UsageError, match="holds several arrays, a .npy file with one is needed"):
        from_npy(several, good)


@pytest.mark.parametrize(
    ("keys", "split", "first"),
    [
        (("X", "y"), None, 0),
        (("features", "labels"), None, 0),
        (("x_train", "y_train"), None, 0),
        (("x_test", "y_test"), "test", 0),
    ],
)
def test_npz_files(tmp_path: Path, keys: tuple[str, str], split: str | None, first: int) -> None:
    path = tmp_path / "set.npz"
    np.savez(path, **{keys[0]: np.arange(8).reshape(4, 2), keys[1]: np.array(Y)})
    samples = from_npz(path, split)
    assert samples.features[0, 0] == first
    assert samples.labels.tolist() == Y


def test_a_split_of_an_npz_file_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.savez(path, X=np.zeros((4, 2)), y=np.array(Y), X_test=np.ones((4, 2)), y_test=np.array(Y))
    assert from_npz(path, "test").features[0, 0] == 1
    assert from_npz(path).features[0, 0] == 0
    for split in ("train", "valid"):
        message = f"no features of the split '{split}' in it .*features_{split}.*it has X; X_test"
        with pytest.raises(UsageError, match=message):
            from_npz(path, split)
    np.savez(path, X_test=np.ones((4, 2)), y=np.array(Y))
    with pytest.raises(UsageError, match="no labels of the split 'test' in it"):
        from_npz(path, "test")


def test_bad_npz_files(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.savez(path, X=np.zeros((4, 2)), other=np.zeros(4))
    with pytest.raises(UsageError, match="no labels in it .looked for labels, label, y,.*X; other"):
        from_npz(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UsageError, match="set.npz: damaged, or no file of numpy"):
        from_npz(path)
