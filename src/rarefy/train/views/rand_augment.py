"""RandAugment (Cubuk et al. 2020) with one operation, for a whole batch: every image with an
operation, a strength and a place of its own.

Operations and the ends of their ranges are those of Zhou et al. 2022, "Contrastive Learning with
Boosted Memorization", which go twice as far as usual. Each is Pillow's function of 8-bit images,
rounding included: shears, shifts and turns take the nearest pixel, and black from outside.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

OPERATIONS: dict[str, tuple[float, float]] = {
    "shear_x": (0.0, 0.6),
    "shear_y": (0.0, 0.6),
    "translate_x": (0.0, 0.66),
    "translate_y": (0.0, 0.66),
    "rotate": (0.0, 60.0),
    "autocontrast": (0.0, 1.0),
    "invert": (0.0, 1.0),
    "equalise": (0.0, 1.0),
    "solarise": (0.0, 110.0),
    "posterise": (4.0, 8.0),
    "contrast": (0.1, 1.9),
    "colour": (0.1, 1.9),
    "brightness": (0.1, 1.9),
    "sharpness": (0.1, 1.9),
    "cutout": (0.0, 0.4),
}
"""By name, what strengths 0 and 1 mean: a slope, a share of the width, degrees, nothing (three of
them), the level from which on pixels are inverted, bits that are kept, a factor, a share."""
NUMBER = {name: number for number, name in enumerate(OPERATIONS)}
GREY = (19595, 38470, 7471)
"""Weights of red, green and blue in a grey level, of 65536 (ITU-R 601 as Pillow has it)."""
CUT_OUT = (125.0, 123.0, 114.0)
"""What is put in place of a part that is cut out (in a grey image: the middle one)."""


class Augment(NamedTuple):
    """What was drawn, a row per image."""

    happens: Tensor
    """(m,), boolean."""
    operation: Tensor
    """(m,): its number."""
    strength: Tensor
    """(m,): between 0 and 1, the ends of the operation's range."""
    sign: Tensor
    """(m,): -1 or 1, to which side."""
    place: Tensor
    """(m, 2): left to right and top to bottom, shares of the image."""


def draw_augment(chance: Tensor, strength: Tensor, generator: torch.Generator) -> Augment:
    """One operation per row, all equally likely, which happens with its ``chance`` (m,)."""
    drawn = torch.rand(5, len(chance), generator=generator, device=generator.device)
    # a number just below 1 may be rounded up to one too many
    operation = (drawn[1] * len(OPERATIONS)).long().clamp(max=len(OPERATIONS) - 1)
    sign = torch.where(drawn[2] < 0.5, -1.0, 1.0)
    return Augment(drawn[0] < chance, operation, strength, sign, drawn[3:].T)


def rand_augment(images: Tensor, drawn: Augment) -> Tensor:
    """``images`` (m, c, h, w), pixels in [0, 1], each changed as was drawn for it, in 256 levels.
    An image to which nothing happens is given back as it is."""
    levels = (images * 255).round().float()
    found = augmented_levels(levels, drawn).to(images.dtype) / 255
    return torch.where(_each(drawn.happens), found, images)


def augmented_levels(levels: Tensor, drawn: Augment) -> Tensor:
    """The same for whole numbers 0, ..., 255 (as float32), whether it happens or not. All
    operations are computed for all images: nobody asks on the host which one is needed."""
    low, high = (
        torch.stack([torch.full_like(drawn.strength, ends[side]) for ends in OPERATIONS.values()])
        for side in (0, 1)
    )
    chosen = drawn.operation[None]
    low, high = low.gather(0, chosen)[0], high.gather(0, chosen)[0]
    value = low + (high - low) * drawn.strength
    grey = _grey(levels)
    amount = _each(value)
    made = {
        "autocontrast": _autocontrast(levels),
        "invert": 255 - levels,
        "equalise": _equalise(levels),
        "solarise": torch.where(levels < amount, levels, 255 - levels),
        "posterise": _posterise(levels, amount),
        "contrast": _blend((grey.mean(dim=(1, 2, 3), keepdim=True) + 0.5).floor(), levels, amount),
        "colour": _blend(grey, levels, amount),
        "brightness": _blend(torch.zeros_like(levels), levels, amount),
        "sharpness": _blend(_smooth(levels), levels, amount),
        "cutout": _cut_out(levels, value, drawn.place),
    }
    found = _moved(levels, drawn.operation, value * drawn.sign)
    for name, changed in made.items():
        found = torch.where(_each(drawn.operation == NUMBER[name]), changed, found)
    return found


# ----------------------------------------------------------------------------------- the operations


def _moved(levels: Tensor, operation: Tensor, value: Tensor) -> Tensor:
    """Shears, shifts and turns; other images stay."""

    def of(name: str) -> Tensor:
        return torch.where(operation == NUMBER[name], value, 0.0)[:, None, None]

    count, channels, height, width = levels.shape
    device = levels.device
    x = torch.arange(width, device=device)[None, None, :] + 0.5
    y = torch.arange(height, device=device)[None, :, None] + 0.5
    angle = of("rotate") * (math.pi / 180)
    cos, sin = torch.cos(angle), torch.sin(angle)
    from_x, from_y = x - width / 2, y - height / 2
    column = cos * from_x - sin * from_y + width / 2 + of("shear_x") * y
    row = sin * from_x + cos * from_y + height / 2 + of("shear_y") * x
    column = (column + of("translate_x") * width).floor()
    row = (row + of("translate_y") * height).floor()
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    place = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
    place = place.long().flatten(1)[:, None].expand(-1, channels, -1)
    taken = levels.flatten(2).gather(2, place).unflatten(2, (height, width))
    return torch.where(inside[:, None], taken, 0.0)


def _autocontrast(levels: Tensor) -> Tensor:
    """Each channel stretched from its darkest to its brightest level."""
    low = levels.amin(dim=(2, 3), keepdim=True)
    span = levels.amax(dim=(2, 3), keepdim=True) - low
    # what is no whole number is at least 1/255 below the next one
    stretched = ((levels - low) * 255 / span.clamp(min=1) + 1e-3).floor()
    return torch.where(span > 0, stretched, levels)


def _equalise(levels: Tensor) -> Tensor:
    """Each channel with its levels spread by how many pixels have them."""
    count, channels, height, width = levels.shape
    pixels = levels.long().flatten(2).flatten(0, 1)
    histogram = torch.zeros(len(pixels), 256, dtype=torch.int64, device=levels.device)
    histogram = histogram.scatter_add(1, pixels, torch.ones_like(pixels))
    before = histogram.cumsum(dim=1) - histogram
    of_brightest = histogram.gather(1, pixels.amax(dim=1, keepdim=True))
    step = (height * width - of_brightest) // 255
    found = ((before + step // 2) // step.clamp(min=1)).clamp(max=255).gather(1, pixels)
    found = torch.where(step > 0, found, pixels)
    return found.unflatten(0, (count, channels)).unflatten(2, (height, width)).to(levels.dtype)


def _posterise(levels: Tensor, bits: Tensor) -> Tensor:
    """So many of the highest bits."""
    unit = torch.exp2(8 - bits.floor().clamp(min=1)).round()
    # (a GPU's division may end just below a whole number; what is none is 1/128 below)
    return (levels / unit + 1 / 512).floor() * unit


def _smooth(levels: Tensor) -> Tensor:
    """A mean over 3 x 3 pixels in which the middle counts five times; the border stays."""
    height, width = levels.shape[2:]
    if min(height, width) < 3:
        return levels
    total = 4 * levels[:, :, 1:-1, 1:-1]
    for down in range(3):
        for right in range(3):
            total = total + levels[:, :, down : down + height - 2, right : right + width - 2]
    inner = functional.pad((total / 13 + 0.5).floor(), (1, 1, 1, 1), value=-1.0)
    return torch.where(inner < 0, levels, inner)


def _cut_out(levels: Tensor, share: Tensor, place: Tensor) -> Tensor:
    """A square, as wide as a share of the image, in one colour."""
    height, width = levels.shape[2:]
    side = share * width
    marks = []
    for axis, size in ((0, width), (1, height)):
        first = (place[:, axis] * size - side / 2).clamp(min=0).floor()[:, None]
        last = (first + side[:, None]).clamp(max=size).floor()  # (Pillow draws it too)
        along = torch.arange(size, device=levels.device)
        marks.append((along >= first) & (along <= last))
    inside = marks[1][:, None, :, None] & marks[0][:, None, None, :]
    if levels.shape[1] == 1:
        return torch.where(inside, CUT_OUT[1], levels)
    planes = zip(levels.split(1, dim=1), CUT_OUT, strict=True)
    return torch.cat([torch.where(inside, put, plane) for plane, put in planes], dim=1)


def _blend(other: Tensor, levels: Tensor, factor: Tensor) -> Tensor:
    """Away from, or towards, another image; Pillow cuts what is behind the point."""
    return (other + factor * (levels - other)).clamp(0, 255).floor()


def _grey(levels: Tensor) -> Tensor:
    """(m, 1, h, w); exact in float32."""
    if levels.shape[1] == 1:
        return levels
    red, green, blue = levels.split(1, dim=1)
    return ((GREY[0] * red + GREY[1] * green + GREY[2] * blue + 32768) * 2**-16).floor()


def _each(values: Tensor) -> Tensor:
    """A number per image, to be used with its pixels."""
    return values[:, None, None, None]
