"""Built-in sets and image folders as samples: all of them, single images, bad files, options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rarefy.core.errors import UsageError
from rarefy.data.images import load_images
from rarefy.tools.samples.images import from_images


def _image(path: Path, seed: int, side: int = 8, grey: bool = False) -> Path:
    random = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (side, side) if grey else (side, side, 3)
    Image.fromarray(random.integers(0, 256, shape, dtype=np.uint8)).save(path)
    return path


def _folder(root: Path, count: int = 5) -> Path:
    for label, name in enumerate(("cat", "dog")):
        for number in range(count):
            _image(root / name / f"{number}.png", 100 * label + number)
    return root


def test_digits_stay_pixels() -> None:
    samples, data = from_images("digits"), load_images("digits")
    assert samples.features.dtype == np.uint8
    assert samples.features.shape == (1438, 64)
    assert samples.scale == 1 / 255
    assert samples.ids == data.train.ids
    assert samples.image == (1, 8, 8)
    assert samples.images is not None
    assert (samples.images(3) == data.train.images[3, 0].numpy()).all()
    assert (samples.name, samples.split, samples.source) == ("digits", "train", data.source)


def test_parts_of_digits() -> None:
    test, whole = from_images("digits", "test"), from_images("digits", split="all")
    assert len(test) == 359
    assert len(whole) == 1797
    assert whole.ids[:1438] == from_images("digits").ids
    with pytest.raises(UsageError, match="split='half': must be one of train, test, all"):
        from_images("digits", "half")


def test_a_folder_without_split_is_taken_whole(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "pets")
    samples = from_images(folder)
    assert len(samples) == 10
    assert (samples.name, samples.split) == ("pets", "all")
    assert samples.files is not None and samples.files[7] == "dog/2.png"
    assert samples.image == (3, 8, 8)
    assert samples.images is not None
    with Image.open(folder / "dog/2.png") as image:
        assert (samples.images(7) == np.asarray(image)).all()
    # as training would split it
    data = load_images(folder)
    assert from_images(folder, "train").ids == data.train.ids
    assert from_images(folder, "test").ids == data.test.ids
    assert set(samples.ids) == {*data.train.ids, *data.test.ids}


def test_a_folder_with_a_split_of_its_own(tmp_path: Path) -> None:
    _folder(tmp_path / "train", 3)
    for name in ("cat", "dog"):
        _image(tmp_path / "test" / name / "x.png", len(name) + ord(name[0]))
    assert len(from_images(tmp_path)) == 6
    assert from_images(tmp_path, "test").files == ("test/cat/x.png", "test/dog/x.png")
    assert len(from_images(tmp_path, "all")) == 8


def test_a_class_may_have_a_single_image(tmp_path: Path) -> None:
    _folder(tmp_path)
    _image(tmp_path / "axolotl" / "only.png", 7, grey=True)
    samples = from_images(tmp_path)
    assert samples.counts.tolist() == [1, 5, 5]
    assert samples.classes == ("axolotl", "cat", "dog")


def test_sizes_and_channels(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    assert from_images(f"{folder}?size=4").image == (3, 4, 4)
    assert from_images(folder, size=4, channels=1).image == (1, 4, 4)
    _image(folder / "cat" / "large.png", 1, side=100)
    assert from_images(folder).image == (3, 32, 32)
    with pytest.raises(UsageError, match="size=0: must be a whole number from 1 to"):
        from_images(folder, size=0)
    with pytest.raises(UsageError, match="unknown option 'sise'; did you mean 'size'"):
        from_images(folder, sise=4)
    with pytest.raises(UsageError, match="size=4: is for folders of images, digits has none"):
        from_images("digits", size=4)


def test_files_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "cat" / "broken.png").write_bytes(b"no image")
    (folder / "cat" / "readme.txt").write_text("about cats")
    with pytest.raises(
        UsageError, match=r"1 of 11 files .* cat/broken.png \(not an image\); .*--skip"
    ):
        from_images(folder)
    samples = from_images(folder, skip_bad=True)
    assert len(samples) == 10
    assert samples.left_out == ("cat/broken.png (not an image)",)
    assert samples.notes == (
        "1 file that is no image (by extension) was ignored",
        "1 file that cannot be read was left out",
    )


def test_one_class_that_can_be_read_is_not_enough(tmp_path: Path) -> None:
    _image(tmp_path / "cat" / "1.png", 0)
    with pytest.raises(UsageError, match="only one class folder, 'cat'"):
        from_images(tmp_path)
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "1.png").write_bytes(b"")
    with pytest.raises(UsageError, match="readable images of at least 2 classes are needed"):
        from_images(tmp_path, skip_bad=True)


def test_neither_set_nor_folder() -> None:
    with pytest.raises(UsageError, match="unknown data set 'digit'; did you mean 'digits'"):
        from_images("digit")
