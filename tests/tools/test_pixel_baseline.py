"""A logistic regression on pixels: what it can see and what not."""

from __future__ import annotations

import torch

from rarefy.data.images import ImageSet
from rarefy.measure.class_report import balanced_accuracy
from rarefy.tools.pixel_baseline import pixel_confusion

NAMES = ("left", "right")


def bright(count: int, size: int = 8, told: bool = True, seed: int = 0) -> ImageSet:
    """Noise, a bright half at the side of the class where it is to be told."""
    draws = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 60, (count, 3, size, size), generator=draws, dtype=torch.uint8)
    labels = torch.arange(count) % 2
    for place, label in enumerate(labels.tolist()):
        half = slice(0, size // 2) if label == 0 else slice(size // 2, size)
        images[place, :, :, half if told else slice(0, 0)] += 100
    return ImageSet(images, labels, NAMES)


def test_what_pixels_tell_is_seen_also_in_large_images() -> None:
    for size in (8, 40):
        found = pixel_confusion(bright(40, size), bright(30, size, seed=1))
        assert found.tolist() == [[15, 0], [0, 15]]


def test_what_they_do_not_tell_is_guessed() -> None:
    found = pixel_confusion(bright(60, told=False), bright(400, told=False, seed=1))
    assert found.sum() == 400 and 35 < balanced_accuracy(found)[0] < 65


def test_one_image_per_class_is_enough_to_answer() -> None:
    assert pixel_confusion(bright(2), bright(10, seed=1)).sum() == 10
