"""Every operation of RandAugment does what Pillow's does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from torch import Tensor

from rarefy.train.views.rand_augment import (
    NUMBER,
    OPERATIONS,
    Augment,
    augmented_levels,
    draw_augment,
    rand_augment,
)

SIDE = 32
MOVED = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
EXACT = ("invert", "equalise", "solarise", "posterise", "cutout")
"""Levels are looked up; of the others, computed in floating point, a level may be the next one."""


def photos(count: int, channels: int = 3, side: int = SIDE) -> Tensor:
    """Smooth colours with noise; one is flat, one has two levels, one is nearly dark."""
    draws = torch.Generator().manual_seed(5)
    coarse = torch.rand(count, channels, 5, 5, generator=draws)
    found = torch.nn.functional.interpolate(coarse, size=(side, side), mode="bicubic")
    found = 255 * found + 12 * torch.randn(found.shape, generator=draws)
    found = found.clamp(0, 255).to(torch.uint8)
    found[0] = 77
    found[1] = torch.where(found[1] > 128, 200, 31)
    found[2] //= 20
    return found


def pil(image: Tensor) -> Image.Image:
    pixels = image.numpy()
    return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0).copy())


def levels(image: Image.Image) -> Tensor:
    pixels = torch.from_numpy(np.array(image))
    return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1)


def affine(*matrix: float) -> Callable[[Image.Image], Image.Image]:
    return lambda image: image.transform(image.size, Image.Transform.AFFINE, matrix)


def by_pillow(name: str, image: Image.Image, value: float, place: list[float]) -> Image.Image:
    width, height = image.size
    ways: dict[str, Callable[[Image.Image], Image.Image]] = {
        "shear_x": affine(1, value, 0, 0, 1, 0),
        "shear_y": affine(1, 0, 0, value, 1, 0),
        "translate_x": affine(1, 0, value * width, 0, 1, 0),
        "translate_y": affine(1, 0, 0, 0, 1, value * height),
        "rotate": lambda one: one.rotate(value),
        "autocontrast": ImageOps.autocontrast,
        "invert": ImageOps.invert,
        "equalise": ImageOps.equalize,
        "solarise": lambda one: ImageOps.solarize(one, value),  # type: ignore[arg-type]
        "posterise": lambda one: ImageOps.posterize(one, int(value)),
        "contrast": lambda one: ImageEnhance.Contrast(one).enhance(value),
        "colour": lambda one: ImageEnhance.Color(one).enhance(value),
        "brightness": lambda one: ImageEnhance.Brightness(one).enhance(value),
        "sharpness": lambda one: ImageEnhance.Sharpness(one).enhance(value),
        "cutout": lambda one: cut_out(one, value * width, place),
    }
    return ways[name](image)


def cut_out(image: Image.Image, side: float, place: list[float]) -> Image.Image:
    found = image.copy()
    x, y = (
        int(max(0, where * size - side / 2)) for where, size in zip(place, image.size, strict=True)
    )
    box = (x, y, min(image.width, x + side), min(image.height, y + side))
    fill = 123 if image.mode == "L" else (125, 123, 114)
    ImageDraw.Draw(found).rectangle(box, fill)
    return found


@pytest.mark.parametrize("channels", [3, 1])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_that_of_pillow(name: str, channels: int) -> None:
    count = 60
    images = photos(count, channels)
    draws = torch.Generator().manual_seed(9)
    drawn = draw_augment(torch.ones(count), torch.rand(count, generator=draws), draws)
    if name not in MOVED:  # the ends of the range too (a slope of 0.6 has ties in every fifth row)
        drawn.strength[:2], drawn.strength[2:4] = 0.0, 1.0
    drawn = drawn._replace(operation=torch.full((count,), NUMBER[name]))
    found = augmented_levels(images.float(), drawn)
    low, high = OPERATIONS[name]
    apart = []
    for image, mine, one in zip(images, found, range(count), strict=True):
        value = low + (high - low) * drawn.strength[one].item()
        if name in MOVED:
            value *= drawn.sign[one].item()
        wanted = levels(by_pillow(name, pil(image), value, drawn.place[one].tolist()))
        apart.append((mine - wanted.float()).abs())
    far = torch.stack(apart)
    if name in EXACT:
        assert far.max() == 0
    elif name in MOVED:
        # Pillow counts places in 1/65536 of a pixel: a pixel may come from the next place
        assert (far > 0).double().mean() < 2e-3
    else:
        assert far.max() <= 1 and (far > 0).double().mean() < 0.01
    if name != "colour" or channels == 3:
        assert not torch.equal(found, images.float())  # (the test sees something happen)


def test_every_image_has_an_operation_of_its_own() -> None:
    count = 3000
    draws = torch.Generator().manual_seed(1)
    chance = torch.linspace(0, 1, count)
    drawn = draw_augment(chance, torch.full((count,), 0.5), draws)
    shares = torch.bincount(drawn.operation, minlength=len(OPERATIONS)) / count
    # five standard deviations
    assert (shares - 1 / 15).abs().max() < 5 * (1 / 15 / count) ** 0.5
    assert abs(drawn.happens.double().mean() - 0.5) < 5 * 0.5 / count**0.5
    assert not drawn.happens[0] and abs(drawn.sign.mean()) < 5 / count**0.5
    assert drawn.place.shape == (count, 2) and 0 <= drawn.place.min() <= drawn.place.max() < 1


def test_together_they_are_what_each_is_alone() -> None:
    images = photos(45) / 255
    draws = torch.Generator().manual_seed(2)
    drawn = draw_augment(torch.full((45,), 0.7), torch.rand(45, generator=draws), draws)
    drawn = drawn._replace(operation=torch.arange(45) % len(OPERATIONS))
    found = rand_augment(images, drawn)
    for one in range(45):
        alone = rand_augment(
            images[one : one + 1], Augment(*(rows[one : one + 1] for rows in drawn))
        )
        assert torch.equal(alone[0], found[one])
        if not drawn.happens[one]:
            assert torch.equal(found[one], images[one])
    assert found.min() >= 0 and found.max() <= 1


@pytest.mark.parametrize("side", [1, 2, 3])
def test_small_images(side: int) -> None:
    images = torch.rand(15, 3, side, side, generator=torch.Generator().manual_seed(0))
    everything = Augment(
        torch.ones(15, dtype=torch.bool),
        torch.arange(15),
        torch.full((15,), 0.5),
        torch.ones(15),
        torch.full((15, 2), 0.5),
    )
    found = rand_augment(images, everything)
    assert found.shape == images.shape and bool(torch.isfinite(found).all())
