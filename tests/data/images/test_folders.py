"""Folders of class folders: splits, sizes, and everything that can be wrong with one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile

from rarefy.core.errors import UsageError
from rarefy.data.images import folders, load_images


def _image(path: Path, seed: int, side: int = 8, grey: bool = False) -> Path:
    random = np.random.default_rng(seed)
    shape = (side, side) if grey else (side, side, 3)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(random.integers(0, 256, shape, dtype=np.uint8)).save(path)
    return path


def _unsplit(root: Path, count: int = 10, classes: tuple[str, ...] = ("cat", "dog")) -> Path:
    for label, name in enumerate(classes):
        for number in range(count):
            _image(root / name / f"{number}.png", 1000 * label + number)
    return root


def _split(root: Path, test: str = "test", count: int = 3) -> Path:
    for place, split in enumerate(("train", test)):
        _unsplit(root / split, count)
        for label, name in enumerate(("cat", "dog")):
            for number in range(count):
                _image(root / split / name / f"{number}.png", 5000 * place + 100 * label + number)
    return root


@pytest.mark.parametrize("test", ["test", "val", "valid", "validation", "Test"])
def test_train_and_test_folders(tmp_path: Path, test: str) -> None:
    data = load_images(str(_split(tmp_path / "pets", test)))
    assert (data.name, data.classes, data.shape) == ("pets", ("cat", "dog"), (3, 8, 8))
    assert data.train.labels.tolist() == data.test.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.train.files == tuple(
        f"train/{name}/{number}.png" for name in ("cat", "dog") for number in range(3)
    )
    with Image.open(tmp_path / "pets" / test / "dog" / "1.png") as image:
        assert np.array_equal(data.test.images[4].permute(1, 2, 0).numpy(), np.asarray(image))
    assert bool(data.notes) == (test.lower() != "test")


def test_test_comes_before_val(tmp_path: Path) -> None:
    _split(tmp_path, "test")
    _split(tmp_path, "val", count=1)
    assert len(load_images(tmp_path).test) == 6


def test_a_split_follows_content_not_names(tmp_path: Path) -> None:
    one = _unsplit(tmp_path / "one", 20)
    data = load_images(one)
    assert len(data.test) == 8 and torch.bincount(data.test.labels).tolist() == [4, 4]
    other = tmp_path / "other"
    for path in sorted(one.rglob("*.png")):
        target = other / path.parent.name / "deeper" / f"x{99 - int(path.stem)}.PNG"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    moved = load_images(other)
    assert moved.fingerprint == data.fingerprint

    # nor on the size that the images are brought to
    def chosen(files: tuple[str, ...] | None) -> set[str]:
        return set(files or ())

    assert chosen(load_images(one, size=4).test.files) == chosen(data.test.files)
    assert len(load_images(one, test_share=0.5).test) == 20


def test_copies_do_not_cross_the_split(tmp_path: Path) -> None:
    _unsplit(tmp_path, 6)
    for number in range(6):
        for copy in "abc":
            source = tmp_path / "cat" / f"{number}.png"
            shutil.copy(source, source.with_name(f"{number}{copy}.png"))
    data = load_images(tmp_path)
    train = {one.partition("-")[0] for one in data.train.ids}
    assert not train & {one.partition("-")[0] for one in data.test.ids}


def test_sizes_and_channels(tmp_path: Path) -> None:
    _unsplit(tmp_path, 3)
    assert load_images(tmp_path).shape == (3, 8, 8)
    assert load_images(tmp_path, size=16).shape == (3, 16, 16)
    assert load_images(tmp_path, channels=1).shape == (1, 8, 8)
    _image(tmp_path / "cat" / "other.png", 9, side=12)
    assert load_images(tmp_path).shape == (3, 32, 32)
    _image(tmp_path / "cat" / "large.png", 9, side=100)
    assert load_images(tmp_path).shape == (3, 32, 32)


def test_photographs_are_said_to_be_cut(tmp_path: Path) -> None:
    _split(tmp_path)
    assert load_images(tmp_path).notes == ()
    whole = _image(tmp_path / "train" / "cat" / "photo.png", 1, side=40)
    said = "1 of 13 images seen as the middle square at 8 x 8 pixels (--size changes that)"
    with Image.open(whole) as image:
        image.resize((40, 30)).save(whole)
    assert load_images(tmp_path, size=8).notes == (said,)


def test_all_grey_is_one_channel_and_some_grey_is_three(tmp_path: Path) -> None:
    for label, name in enumerate(("a", "b")):
        for number in range(3):
            _image(tmp_path / name / f"{number}.png", 10 * label + number, grey=True)
    grey = load_images(tmp_path)
    assert grey.shape == (1, 8, 8)
    assert load_images(tmp_path, channels=3).shape == (3, 8, 8)
    _image(tmp_path / "a" / "colour.png", 77)
    mixed = load_images(tmp_path)
    assert mixed.shape == (3, 8, 8)
    assert mixed.train.files is not None
    place = next(n for n, name in enumerate(mixed.train.files) if "colour" not in name)
    assert torch.equal(mixed.train.images[place, 0], mixed.train.images[place, 2])


def test_hidden_and_other_files_are_passed_over(tmp_path: Path) -> None:
    _unsplit(tmp_path, 3)
    (tmp_path / "cat" / ".DS_Store").write_bytes(b"x")
    (tmp_path / "cat" / "._0.png").write_bytes(b"x")
    (tmp_path / "cat" / "notes.txt").write_text("x")
    (tmp_path / "dog" / "Thumbs.db").write_text("x")
    (tmp_path / ".git").mkdir()
    _image(tmp_path / "__MACOSX" / "x.png", 1)
    (tmp_path / "readme.txt").write_text("beside the classes")
    data = load_images(tmp_path)
    assert data.classes == ("cat", "dog") and len(data.train) + len(data.test) == 6
    assert "2 files that are no images" in data.notes[0]


def _make_empty(root: Path) -> None:
    (root / "train" / "empty").mkdir()
    (root / "test" / "empty").mkdir()


def _make_text_only(root: Path) -> None:
    for path in (root / "test" / "dog").iterdir():
        path.rename(path.with_suffix(".txt"))


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    """Without folders in it, among others; one with folders is the part that is trained on."""
    draws = np.random.default_rng(0)
    for name in ("train", "bus"):
        for number in range(5):
            path = tmp_path / "vehicles" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(draws.integers(0, 256, (8, 8), dtype=np.uint8)).save(path)
    found = load_images(str(tmp_path / "vehicles"))
    assert found.train.classes == ("bus", "train") and len(found.train) == 8
    (tmp_path / "vehicles" / "train" / "steam").mkdir()
    with pytest.raises(UsageError, match="has train/ but no test/"):
        load_images(str(tmp_path / "vehicles"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_make_empty, "'train/empty' is empty; class folder 'test/empty' is empty"),
        (_make_text_only, r"'test/dog' holds no images \(3 other files\)"),
        (lambda root: shutil.rmtree(root / "test" / "dog"), "'dog' is missing in test/"),
        (lambda root: shutil.rmtree(root / "train" / "dog"), "'dog' is missing in train/"),
        (lambda root: shutil.rmtree(root / "test"), "has train/ but no test/ .* give .*train"),
        (lambda root: shutil.rmtree(root / "train"), "has test/ but no train/"),
        (
            lambda root: [shutil.rmtree(root / split / "dog") for split in ("train", "test")],
            "only one class folder, 'cat'",
        ),
        (
            lambda root: [
                shutil.rmtree(root / split / name)
                for split in ("train", "test")
                for name in ("cat", "dog")
            ],
            "no class folders",
        ),
    ],
)
def test_a_wrong_layout_is_one_line(tmp_path: Path, change, words: str) -> None:  # type: ignore[no-untyped-def]
    root = _split(tmp_path / "pets")
    change(root)
    with pytest.raises(UsageError, match=words) as caught:
        load_images(root)
    assert "\n" not in str(caught.value)


def test_an_unsplit_folder_needs_classes_and_two_images_of_each(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no class folders"):
        load_images(tmp_path)
    _image(tmp_path / "cat" / "0.png", 0)
    with pytest.raises(UsageError, match="only one class folder"):
        load_images(tmp_path)
    _image(tmp_path / "dog" / "0.png", 1)
    _image(tmp_path / "dog" / "1.png", 2)
    with pytest.raises(UsageError, match="at least 2 different images .* 'cat'"):
        load_images(tmp_path)
    shutil.copy(tmp_path / "cat" / "0.png", tmp_path / "cat" / "copy.png")
    with pytest.raises(UsageError, match="at least 2 different images .* 'cat'"):
        load_images(tmp_path)
    _image(tmp_path / "cat" / "1.png", 3)
    assert len(load_images(tmp_path).test) >= 2


def test_all_bad_files_are_told_at_once_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _unsplit(tmp_path, 20)
    for number in range(13):
        path = tmp_path / "cat" / f"{number:02}bad.png"
        path.write_bytes(b"" if number % 2 else (tmp_path / "dog" / "0.png").read_bytes()[:-70])
    with pytest.raises(UsageError) as caught:
        load_images(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"13 of 53 files of {tmp_path} cannot be read: cat/00bad.png (")
    assert "cat/01bad.png (empty file)" in message and "and 3 more" in message
    assert "cat/09bad.png" in message and "cat/10bad.png" not in message
    assert "--skip-bad" in message and "\n" not in message
    data = load_images(tmp_path, skip_bad=True)
    assert len(data.train) + len(data.test) == 40 and len(data.left_out) == 13
    told = capsys.readouterr().err
    assert told.startswith("warning: 13 files") and told.count("\n") == 1
    clean = tmp_path / "clean"
    for name in ("cat", "dog"):
        for path in (tmp_path / name).glob("*.png"):
            if "bad" not in path.name:
                (clean / name).mkdir(parents=True, exist_ok=True)
                shutil.copy(path, clean / name)
    assert load_images(clean).fingerprint == data.fingerprint


@pytest.mark.parametrize("split", [True, False])
def test_a_class_of_bad_files_only_is_an_error_even_when_skipping(
    tmp_path: Path, split: bool
) -> None:
    (_split if split else _unsplit)(tmp_path)
    place = tmp_path / "test" / "dog" if split else tmp_path / "dog"
    for path in place.iterdir():
        path.write_bytes(b"")
    with pytest.raises(UsageError, match="'dog'.*files cannot be read: .*empty file"):
        load_images(tmp_path, skip_bad=True)


def test_a_program_that_accepts_truncated_files_does_not_make_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    _unsplit(tmp_path, 3)
    photo = tmp_path / "cat" / "photo.jpg"
    _image(photo, 1, side=60)
    photo.write_bytes(photo.read_bytes()[:-300])
    with pytest.raises(UsageError, match=r"photo.jpg \(image file is truncated"):
        load_images(tmp_path)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


def test_loops_of_links_end(tmp_path: Path) -> None:
    _unsplit(tmp_path, 3)
    (tmp_path / "cat" / "loop").symlink_to(tmp_path / "cat", target_is_directory=True)
    (tmp_path / "dog" / "self").symlink_to(tmp_path / "dog" / "self")
    data = load_images(tmp_path)
    assert len(data.train) + len(data.test) == 6


def test_a_link_to_a_class_works(tmp_path: Path) -> None:
    real = _unsplit(tmp_path / "real", 3)
    root = tmp_path / "linked"
    root.mkdir()
    for name in ("cat", "dog"):
        (root / name).symlink_to(real / name, target_is_directory=True)
    assert load_images(root).fingerprint == load_images(real).fingerprint


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    _unsplit(tmp_path, 3)
    (tmp_path / "cat" / "0.png").chmod(0)
    with pytest.raises(UsageError, match=r"cat/0.png \(Permission denied\)"):
        load_images(tmp_path)


def test_many_files_show_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _unsplit(tmp_path / "pets", 5)
    load_images(tmp_path / "pets")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(folders, "MANY", 10)
    load_images(tmp_path / "pets")
    assert "images of pets: finished at 100%" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"size": 0}, "size=0: must be a whole number from 1 to 1024"),
        ({"size": 2000}, "size=2000"),
        ({"size": 8.5}, "size=8.5"),
        ({"test_share": 0.0}, "test_share=0.0"),
        ({"test_share": 1.0}, "between 0 and 1"),
        ({"test_share": float("nan")}, "between 0 and 1"),
        ({"channels": 2}, "channels=2"),
        ({"sise": 3}, "unknown option 'sise'; did you mean 'size'"),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, option: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_images(_unsplit(tmp_path, 2), **option)
