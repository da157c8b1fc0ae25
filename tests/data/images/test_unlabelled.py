"""A folder of images without labels: any depth, mixed sizes and modes, bad files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rarefy.core.errors import UsageError
from rarefy.data.images import load_images
from rarefy.data.images.folders import FolderOptions
from rarefy.data.images.unlabelled import UNLABELLED, load_unlabelled


def _image(path: Path, seed: int, shape: tuple[int, ...] = (8, 8, 3)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def test_all_images_below_at_any_depth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("0.png", "a/1.png", "a/b/2.PNG", "z/3.png")
    for seed, name in enumerate(names):
        _image(tmp_path / name, seed)
    (tmp_path / "notes.txt").write_text("x")
    _image(tmp_path / ".hidden.png", 9)
    images = load_unlabelled(str(tmp_path))
    assert images.files == names and images.classes == UNLABELLED == ("images",)
    assert images.labels.tolist() == [0, 0, 0, 0] and images.images.shape == (4, 3, 8, 8)
    with Image.open(tmp_path / "a/b/2.PNG") as image:
        assert np.array_equal(images.images[2].permute(1, 2, 0).numpy(), np.asarray(image))
    assert capsys.readouterr().err == ""


def test_sizes_and_modes_are_unified(tmp_path: Path) -> None:
    _image(tmp_path / "a.png", 0, (8, 8))
    assert load_unlabelled(tmp_path).images.shape == (1, 1, 8, 8)
    _image(tmp_path / "b.png", 1, (8, 8, 4))
    mixed = load_unlabelled(tmp_path).images
    assert mixed.shape == (2, 3, 8, 8) and torch.equal(mixed[0, 0], mixed[0, 2])
    _image(tmp_path / "c.png", 2, (20, 10, 3))
    _image(tmp_path / "d.jpg", 3, (100, 140, 3))
    assert load_unlabelled(tmp_path).images.shape == (4, 3, 32, 32)
    options = FolderOptions(size=12, channels=1)
    assert load_unlabelled(tmp_path, options).images.shape == (4, 1, 12, 12)


def test_images_are_those_of_class_folders(tmp_path: Path) -> None:
    for seed in range(6):
        _image(tmp_path / "ab"[seed % 2] / f"{seed}.png", seed, (9 + seed, 9, 3))
    data = load_images(tmp_path)
    images = load_unlabelled(tmp_path)
    assert set(images.ids) == {*data.train.ids, *data.test.ids} and len(images) == 6


def test_one_bad_file_is_an_error_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _image(tmp_path / "a.png", 0)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "bad.png").write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        load_unlabelled(tmp_path)
    message = f"1 of 2 files of {tmp_path} cannot be read: deep/bad.png (empty file); remove"
    assert str(caught.value).startswith(message) and "--skip-bad" in str(caught.value)
    images = load_unlabelled(tmp_path, FolderOptions(skip_bad=True))
    assert images.files == ("a.png",)
    assert capsys.readouterr().err == (
        f"warning: 1 file of {tmp_path} is left out, it cannot be read: deep/bad.png (empty file)\n"
    )
    (tmp_path / "deep" / "worse.png").write_bytes(b"x")
    load_unlabelled(tmp_path, FolderOptions(skip_bad=True))
    told = capsys.readouterr().err
    assert told.startswith(f"warning: 2 files of {tmp_path} are left out, they cannot be read: ")


def test_a_folder_without_a_readable_image(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no images in it$"):
        load_unlabelled(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match=r"no images in it \(1 other file\)"):
        load_unlabelled(tmp_path)
    (tmp_path / "bad.png").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"no image in it can be read: bad.png \(not an"):
        load_unlabelled(tmp_path, FolderOptions(skip_bad=True))
    with pytest.raises(UsageError, match="none: cannot be read"):
        load_unlabelled(tmp_path / "none")
    with pytest.raises(UsageError, match=r"bad.png: cannot be read \(Not a directory\)"):
        load_unlabelled(tmp_path / "bad.png")


def test_test_images_among_them_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _image(tmp_path / "train" / "a.png", 0)
    _image(tmp_path / "val" / "b.png", 1)
    assert len(load_unlabelled(tmp_path)) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"warning: the images of {tmp_path} include those of val/; ")
    assert told.endswith(f"give {tmp_path / 'train'}\n") and told.count("\n") == 1
    assert len(load_unlabelled(tmp_path / "train")) == 1 and capsys.readouterr().err == ""


def test_one_file_is_spelled_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In folders of class folders too."""
    for seed in range(8):
        _image(tmp_path / "ab"[seed % 2] / f"{seed}.png", seed)
    (tmp_path / "a" / "notes.txt").write_text("x")
    (tmp_path / "b" / "bad.png").write_bytes(b"")
    data = load_images(tmp_path, skip_bad=True)
    assert data.notes[0] == "1 file that is no image (by extension) was ignored"
    assert f"1 file of {tmp_path} is left out, it cannot be read" in capsys.readouterr().err
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match=r"'c' holds no images \(1 other file\)"):
        load_images(tmp_path)
    (tmp_path / "c" / "bad.png").write_bytes(b"")
    with pytest.raises(UsageError, match="fewer of 'c'; 2 files cannot be read"):
        load_images(tmp_path, skip_bad=True)
    (tmp_path / "b" / "bad.png").unlink()
    with pytest.raises(UsageError, match="fewer of 'c'; 1 file cannot be read"):
        load_images(tmp_path, skip_bad=True)
