"""MNIST's idx files, gzipped and not, whole and damaged."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rarefy.core.errors import UsageError
from rarefy.data.images import load_images
from rarefy.data.images.mnist import FILES

Change = Callable[[bytes], bytes]


def _idx(values: np.ndarray) -> bytes:
    header = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


def _arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        FILES[0]: random.integers(0, 256, (12, 5, 5)),
        FILES[1]: np.arange(12) % 10,
        FILES[2]: random.integers(0, 256, (4, 5, 5)),
        FILES[3]: np.arange(4),
    }


def _write(
    folder: Path, change: dict[str, Change] | None = None, packed: bool = True, mark: str = "-"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in _arrays().items():
        content = (change or {}).get(name, lambda whole: whole)(_idx(values))
        spelled = name.replace("-idx", f"{mark}idx")
        if packed:
            (folder / f"{spelled}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / spelled).write_bytes(content)
    return folder


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("inner", ["MNIST/raw", "."])
@pytest.mark.parametrize("mark", ["-", "."])
def test_every_layout_is_read(tmp_path: Path, packed: bool, inner: str, mark: str) -> None:
    _write(tmp_path / inner, packed=packed, mark=mark)
    data = load_images("mnist", tmp_path)
    arrays = _arrays()
    assert np.array_equal(data.train.images[:, 0].numpy(), arrays[FILES[0]])
    assert np.array_equal(data.test.labels.numpy(), arrays[FILES[3]])
    assert data.shape == (1, 5, 5)
    assert data.classes == tuple("0123456789")
    assert Path(data.source) == tmp_path / inner


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (FILES[0], lambda whole: whole[:-1], "truncated, only 299 bytes where .* promises 300"),
        (FILES[0], lambda whole: whole + b"x", "damaged, more bytes"),
        (FILES[0], lambda whole: whole[:9], "within its header"),
        (FILES[0], lambda whole: b"", "empty file"),
        (FILES[0], lambda whole: b"\0\0\x0d\3" + whole[4:], "starts with 00000d03.*00000803"),
        (FILES[1], lambda whole: b"\0\0\x08\3" + whole[4:], "starts with 00000803.*00000801"),
        (FILES[0], lambda whole: b"<html>not found</html>", "starts with 3c68746d"),
        # promises four thousand million images: told, without asking for the memory
        (FILES[0], lambda whole: whole[:4] + b"\xff" * 12 + whole[16:], "truncated, only 300"),
        (FILES[1], lambda whole: whole[:-1] + b"\x0a", "label 10 at position 11; .* 0 to 9"),
        (FILES[1], lambda whole: _idx(np.arange(7)), "7 labels for the 12 images"),
        (FILES[2], lambda whole: _idx(np.zeros((4, 6, 6))), r"images of \(6, 6\).*\(5, 5\)"),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_damage_is_one_line_with_the_file(
    tmp_path: Path, packed: bool, name: str, change: Change, words: str
) -> None:
    _write(tmp_path, {name: change}, packed)
    with pytest.raises(UsageError, match=words) as caught:
        load_images("mnist", tmp_path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_images_is_an_error(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            FILES[2]: lambda whole: _idx(np.zeros((0, 5, 5))),
            FILES[3]: lambda whole: _idx(np.zeros(0)),
        },
    )
    with pytest.raises(UsageError, match="no images in it"):
        load_images("mnist", tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda packed: packed[:-20], "truncated or damaged gzip"),
        (lambda packed: packed[:40], "truncated or damaged gzip"),
        (lambda packed: packed[:30] + b"\xff" * 8 + packed[38:], "damaged|cannot be read"),
        (lambda packed: b"not gzip at all", "cannot be read.*gzip"),
        (lambda packed: b"", "empty file"),
    ],
)
def test_a_damaged_gzip_is_told(tmp_path: Path, change: Change, words: str) -> None:
    _write(tmp_path)
    path = tmp_path / f"{FILES[0]}.gz"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UsageError, match=words) as caught:
        load_images("mnist", tmp_path)
    assert str(path) in str(caught.value)


def test_absent_says_where_and_what_to_do(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / f"{FILES[3]}.gz").unlink()
    with pytest.raises(UsageError) as caught:
        load_images("mnist", tmp_path)
    message = str(caught.value)
    for words in (
        str(tmp_path),
        "rarefy data fetch mnist --data-folder",
        "t10k-labels",
        "MNIST/raw",
    ):
        assert words in message
    assert "\n" not in message
