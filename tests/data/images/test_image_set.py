"""Sets of images: their checks, taking a part, moving, mean and std."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.data.images import ImageData, ImageSet, load_images
from rarefy.data.images.checking import examine


def _set(count: int = 6, channels: int = 3) -> ImageSet:
    generator = torch.Generator().manual_seed(count)
    images = torch.randint(0, 256, (count, channels, 4, 4), dtype=torch.uint8, generator=generator)
    labels = torch.arange(count) % 2
    files = tuple(f"{number}.png" for number in range(count))
    levels = {"fine": (torch.arange(count), tuple(map(str, range(count))))}
    return ImageSet(images, labels, ("even", "odd"), files, levels)


def test_take_keeps_everything_in_step() -> None:
    whole = _set()
    part = whole.take([4, 1])
    assert torch.equal(part.images, whole.images[[4, 1]])
    assert part.labels.tolist() == [0, 1]
    assert part.files == ("4.png", "1.png")
    assert part.levels["fine"][0].tolist() == [4, 1]
    assert part.ids == (whole.ids[4], whole.ids[1])
    masked = whole.take(whole.labels == 1)
    assert masked.files == ("1.png", "3.png", "5.png")
    assert len(whole.take([])) == 0
    assert whole.take(np.array([2])).files == ("2.png",)


def test_a_taken_copy_keeps_the_id_it_had() -> None:
    images = torch.zeros(3, 1, 2, 2, dtype=torch.uint8)
    whole = ImageSet(images, torch.zeros(3, dtype=torch.int64), ("a",))
    assert whole.take([2]).ids == (whole.ids[2],)
    assert whole.take([2]).take([0]).ids == (whole.ids[2],)


@pytest.mark.parametrize(
    ("indices", "words"),
    [([6], "from 0 to 5"), ([-1], "from 0 to 5"), ([0.5], "whole"), ([True], "mask")],
)
def test_wrong_indices_are_told(indices: list[int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        _set().take(indices)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("hashed", [True, False])
def test_to_moves_all_and_keeps_ids(device: str, hashed: bool) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    whole = _set()
    if hashed:
        assert whole.ids
    moved = whole.to(device)
    assert moved.images.device.type == moved.labels.device.type == device
    assert moved.levels["fine"][0].device.type == device
    assert moved.ids == whole.ids
    assert moved.take([3, 1]).files == ("3.png", "1.png")
    data = ImageData("x", whole, whole, "")
    assert data.to(device).mean == data.mean and data.to(device).std == data.std


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": torch.zeros(6, 3, 4, 4)}, "images='torch.float32"),
        ({"images": torch.zeros(6, 4, 4, dtype=torch.uint8)}, "channels, height, width"),
        ({"labels": torch.zeros(5, dtype=torch.int64)}, r"labels=.*int64 \(6,\)"),
        ({"labels": torch.zeros(6, dtype=torch.int32)}, "int64"),
        ({"labels": torch.full((6,), 2)}, "from 0 to 1"),
        ({"labels": torch.full((6,), -1)}, "from 0 to 1"),
        ({"files": ("a",)}, "must be 6"),
        ({"levels": {"fine": (torch.full((6,), 3), ("a", "b"))}}, "levels.*fine.*from 0 to 1"),
    ],
)
def test_a_set_checks_itself(change: dict[str, object], words: str) -> None:
    whole = _set()
    parts = {name: getattr(whole, name) for name in ("images", "labels", "classes", "files")}
    with pytest.raises(UsageError, match=words):
        ImageSet(**{**parts, **change})  # type: ignore[arg-type]


def test_data_checks_its_splits() -> None:
    whole = _set()
    with pytest.raises(UsageError, match="0 images"):
        ImageData("x", whole, whole.take([]), "")
    with pytest.raises(UsageError, match="shape of train"):
        ImageData("x", whole, _set(channels=1), "")
    other = ImageSet(whole.images, whole.labels, ("odd", "even"))
    with pytest.raises(UsageError, match="must have train's"):
        ImageData("x", whole, other, "")


def test_mean_and_std_are_those_of_the_train_pixels() -> None:
    train, test = _set(40), _set(6)
    data = ImageData("x", train, test, "")
    scaled = train.images.double() / 255
    assert data.mean == pytest.approx(scaled.mean(dim=(0, 2, 3)).tolist(), abs=1e-12)
    expected = scaled.std(dim=(0, 2, 3), correction=0).tolist()
    assert data.std == pytest.approx(expected, abs=1e-12)
    assert data.shape == (3, 4, 4)
    assert data.to("cpu").fingerprint == data.fingerprint
    constant = train.take([0, 1])
    constant.images[:] = 51
    assert ImageData("x", constant, test, "").std == (0.0, 0.0, 0.0)
    assert ImageData("x", constant, test, "").mean == pytest.approx((0.2,) * 3)


def test_digits_are_bundled_and_always_split_alike() -> None:
    digits = load_images("digits")
    assert digits.shape == (1, 8, 8)
    assert len(digits.train) + len(digits.test) == 1797
    assert set(digits.train.images.unique().tolist()) == {(v * 255 + 8) // 16 for v in range(17)}
    # the split is fixed for good: results are compared by this fingerprint
    assert digits.fingerprint == "f40ced6bc465c15d"
    assert not set(digits.train.ids) & set(digits.test.ids)
    for label in range(10):
        inside = int((digits.test.labels == label).sum())
        total = inside + int((digits.train.labels == label).sum())
        assert inside == round(0.2 * total)


def test_examination_counts_copies_and_contradictions() -> None:
    def flat(values: list[int], labels: list[int]) -> ImageSet:
        pixels = torch.tensor(values, dtype=torch.uint8)[:, None, None, None]
        return ImageSet(pixels.expand(-1, 1, 2, 2), torch.tensor(labels), ("a", "b"))

    data = ImageData("x", flat([1, 1, 2, 3, 4], [0, 0, 0, 1, 1]), flat([1, 2, 9], [0, 1, 1]), "")
    found = examine(data)
    assert (found.train.copies, found.test.copies, found.shared) == (1, 0, 2)
    assert found.contradictions == 1  # image 2 is an a in train and a b in test
    assert (found.train.fewest, found.train.fewest_class) == (2, "b")
    assert (found.train.most, found.train.most_class) == (3, "a")
