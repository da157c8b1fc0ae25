"""Crops: torchvision's law, and the pixels of crop + interpolate image by image."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import ks_2samp
from torch import Tensor
from torch.nn import functional

from rarefy.core.errors import UsageError
from rarefy.train.views.crop import by_matrices, by_taps, draw_crops, resized_crop

FORMS = {"taps": by_taps, "matrices": by_matrices, "chosen": resized_crop}
SHAPES = {
    "enlarged": (8, 8, 8),
    "enlarged, odd": (5, 7, 9),
    "oblong": (6, 17, 8),
    "reduced": (20, 23, 7),
    "reduced a lot": (33, 40, 3),
    "to a point": (6, 6, 1),
}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_images(height: int, width: int, count: int = 40, channels: int = 3) -> Tensor:
    return torch.rand(count, channels, height, width, generator=generator(1))


def some_boxes(count: int, height: int, width: int) -> Tensor:
    """Of all sizes, single pixels and whole images among them."""
    boxes = draw_crops(count, height, width, (0.01, 1.0), (0.2, 5.0), generator(2))
    boxes[0] = torch.tensor([0, 0, height, width])
    boxes[1] = torch.tensor([height - 1, width - 1, 1, 1])
    boxes[2] = torch.tensor([0, width // 2, height, 1])
    return boxes


def by_hand(
    images: Tensor, boxes: Tensor, size: int, mirrored: Tensor, way: str, antialias: bool = True
) -> Tensor:
    views = []
    for image, (top, left, tall, wide), flip in zip(
        images, boxes.tolist(), mirrored.tolist(), strict=True
    ):
        piece = image[None, :, top : top + tall, left : left + wide]
        view = functional.interpolate(
            piece, size=(size, size), mode=way, align_corners=False, antialias=antialias
        )[0]
        views.append(view.flip(2) if flip else view)
    return torch.stack(views)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", ["bilinear", "bicubic"])
@pytest.mark.parametrize("form", FORMS)
def test_every_crop_is_cut_and_interpolated(form: str, way: str, shape: str) -> None:
    height, width, size = SHAPES[shape]
    images, boxes = some_images(height, width), some_boxes(40, height, width)
    mirrored = torch.rand(40, generator=generator(3)) < 0.5
    found = FORMS[form](images, boxes, size, mirrored, way)
    wanted = by_hand(images, boxes, size, mirrored, way)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_an_enlarged_crop_needs_no_antialias(form: str) -> None:
    """Bilinear: the plain interpolation, whose coordinates are clamped to the crop."""
    images, boxes = some_images(9, 9), some_boxes(40, 9, 9)
    mirrored = torch.zeros(40, dtype=torch.bool)
    found = FORMS[form](images, boxes, 9, mirrored, "bilinear")
    wanted = by_hand(images, boxes, 9, mirrored, "bilinear", antialias=False)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("way", ["bilinear", "bicubic"])
@pytest.mark.parametrize("form", FORMS)
def test_pixels_outside_the_crop_have_no_say(form: str, way: str) -> None:
    images, boxes = some_images(12, 11), some_boxes(40, 12, 11)
    mirrored = torch.zeros(40, dtype=torch.bool)
    elsewhere = images + 100
    for image, other, (top, left, tall, wide) in zip(
        images, elsewhere, boxes.tolist(), strict=True
    ):
        inside = (slice(None), slice(top, top + tall), slice(left, left + wide))
        other[inside] = image[inside]
    first, second = (
        FORMS[form](one, boxes, 8, mirrored, way).double() for one in (images, elsewhere)
    )
    torch.testing.assert_close(first, second, rtol=0, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_several_crops_of_each_image(form: str) -> None:
    images, boxes = some_images(8, 8, count=10), some_boxes(30, 8, 8)
    mirrored = torch.arange(30) % 2 == 0
    found = FORMS[form](images, boxes, 6, mirrored, "bilinear")
    one_by_one = resized_crop(images.repeat_interleave(3, dim=0), boxes, 6, mirrored)
    torch.testing.assert_close(found, one_by_one, rtol=0, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_stored_bytes_are_taken_as_they_are(form: str) -> None:
    images = (255 * some_images(8, 8)).to(torch.uint8)
    boxes, mirrored = some_boxes(40, 8, 8), torch.zeros(40, dtype=torch.bool)
    found = FORMS[form](images, boxes, 8, mirrored, "bicubic")
    wanted = by_hand(images.float(), boxes, 8, mirrored, "bicubic")
    torch.testing.assert_close(found, wanted, rtol=0, atol=255e-5)


@pytest.mark.parametrize("form", FORMS)
def test_float64_stays_float64(form: str) -> None:
    images, boxes = some_images(9, 9).double(), some_boxes(40, 9, 9)
    mirrored = torch.zeros(40, dtype=torch.bool)
    found = FORMS[form](images, boxes, 7, mirrored, "bicubic")
    wanted = by_hand(images, boxes, 7, mirrored, "bicubic")
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_mixed_precision_around_it_changes_nothing() -> None:
    images, boxes = some_images(8, 8), some_boxes(40, 8, 8)
    mirrored = torch.zeros(40, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = resized_crop(images, boxes, 8, mirrored)
    assert torch.equal(found, resized_crop(images, boxes, 8, mirrored))


def plain_crop(
    height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> Callable[[random.Random], tuple[int, int, int, int]]:
    """torchvision's ``RandomResizedCrop.get_params``, written down again."""

    def draw(draws: random.Random) -> tuple[int, int, int, int]:
        for _ in range(10):
            area = height * width * draws.uniform(*scale)
            aspect = math.exp(draws.uniform(math.log(ratio[0]), math.log(ratio[1])))
            wide, tall = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < wide <= width and 0 < tall <= height:
                return draws.randint(0, height - tall), draws.randint(0, width - wide), tall, wide
        tall, wide = height, width
        if width / height < min(ratio):
            tall = round(width / min(ratio))
        elif width / height > max(ratio):
            wide = round(height * max(ratio))
        return (height - tall) // 2, (width - wide) // 2, tall, wide

    return draw


@pytest.mark.parametrize(
    ("height", "width", "scale"),
    [(32, 32, (0.1, 1.0)), (32, 32, (0.9, 1.0)), (20, 40, (0.5, 1.0)), (40, 20, (0.7, 1.0))],
)
def test_crops_have_the_law_of_torchvision(
    height: int, width: int, scale: tuple[float, float]
) -> None:
    """Shape and place by a two-sample Kolmogorov-Smirnov test; at 1e-4 each of the 28 tests of all
    four cases is passed by chance with 99.7 %. Most tries fail in the last cases."""
    ratio, count = (3 / 4, 4 / 3), 10_000
    found = draw_crops(count, height, width, scale, ratio, generator(4)).numpy()
    draw, draws = plain_crop(height, width, scale, ratio), random.Random(5)
    wanted = np.array([draw(draws) for _ in range(count)])
    measures: list[Callable[[np.ndarray], np.ndarray]] = [
        *(lambda boxes, column=column: boxes[:, column] for column in range(4)),
        lambda boxes: boxes[:, 2] * boxes[:, 3],
        lambda boxes: boxes[:, 2] - boxes[:, 3],
        lambda boxes: boxes[:, 0] - boxes[:, 1],
    ]
    for measure in measures:
        assert ks_2samp(measure(found), measure(wanted)).pvalue > 1e-4


def test_where_nothing_fits_the_crop_is_central() -> None:
    wide = draw_crops(50, 10, 100, (1.0, 1.0), (0.5, 2.0), generator())
    assert wide.tolist() == [[0, 40, 10, 20]] * 50
    tall = draw_crops(50, 100, 10, (1.0, 1.0), (0.5, 2.0), generator())
    assert tall.tolist() == [[40, 0, 20, 10]] * 50
    # a square may not be cut at all where every allowed crop is too large
    square = draw_crops(50, 10, 10, (1.0, 1.0), (0.2, 5.0), generator())
    assert [0, 0, 10, 10] in square.tolist()


@given(
    height=some.integers(1, 40),
    width=some.integers(1, 40),
    low=some.floats(0.01, 1.0),
    ratio=some.floats(0.05, 1.0),
)
def test_crops_lie_inside(height: int, width: int, low: float, ratio: float) -> None:
    boxes = draw_crops(64, height, width, (low, 1.0), (ratio, 1 / ratio), generator())
    top, left, tall, wide = boxes.unbind(1)
    assert boxes.dtype == torch.int64
    assert bool((top >= 0).all() and (left >= 0).all() and (tall >= 1).all() and (wide >= 1).all())
    assert bool((top + tall <= height).all() and (left + wide <= width).all())


def test_other_ways_are_refused() -> None:
    images, boxes = some_images(4, 4, 3), some_boxes(3, 4, 4)
    with pytest.raises(UsageError, match="unknown way 'bilinaer'; did you mean 'bilinear'"):
        resized_crop(images, boxes, 4, torch.zeros(3, dtype=torch.bool), "bilinaer")


def test_boxes_must_be_as_many_as_images_or_a_multiple() -> None:
    with pytest.raises(UsageError, match=r"boxes=\(4, 4\): needs a multiple of 3 rows"):
        resized_crop(some_images(4, 4, 3), some_boxes(4, 4, 4), 4, torch.zeros(4, dtype=torch.bool))
