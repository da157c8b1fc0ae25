"""Random changes of colour, every image with strengths and an order of its own.

Definitions are those of torchvision's functions for tensors, pixels in [0, 1]. Inside, an image is
a tuple of *planes*, its channels as (n, pixels): a whole chain of changes then is arithmetic on
three tensors that a compiler makes one pass of. Where there is one channel, saturation, hue and
greyscale do nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import bad_value

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
"""What ``order`` speaks of, numbered as in torchvision's ``ColorJitter``."""
GREY = (0.2989, 0.587, 0.114)
"""Weights of red, green and blue in the grey value (ITU-R 601, as torchvision rounds them)."""

Planes = tuple[Tensor, ...]


def draw_jitter(
    count: int, amounts: tuple[float, float, float, float], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Strengths (count, 4) and orders (count, 4) of the four changes.

    With amount a, brightness, contrast and saturation are multiplied by a factor uniform in
    [max(0, 1 - a), 1 + a] and hue is turned by a share of the circle uniform in [-a, a]. All 24
    orders are equally likely.
    """
    device = generator.device
    drawn = torch.rand(count, 4, generator=generator, device=device)
    factors = torch.empty_like(drawn)
    for which, amount in enumerate(amounts):
        low, high = (-amount, amount) if which == HUE else (max(0.0, 1 - amount), 1 + amount)
        factors[:, which] = low + (high - low) * drawn[:, which]
    order = torch.rand(count, 4, generator=generator, device=device).argsort(dim=1)
    return factors, order


def jitter(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """All four changes of ``images`` (n, c, h, w), each image in its own ``order`` (n, 4)."""
    return _joined(jitter_planes(_planes(images), factors, order), images)


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Pixels times ``factor`` (n,), cut at 1."""
    planes = _planes(images)
    return _joined(tuple(_blend(plane, 0.0, factor[:, None]) for plane in planes), images)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Away from, or towards, the mean grey value of the image."""
    planes = _planes(images)
    mean = _grey(planes).mean(dim=1, keepdim=True)
    return _joined(tuple(_blend(plane, mean, factor[:, None]) for plane in planes), images)


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Each pixel away from, or towards, its grey value."""
    planes = _planes(images)
    if len(planes) == 1:
        return images
    grey = _grey(planes)
    return _joined(tuple(_blend(plane, grey, factor[:, None]) for plane in planes), images)


def hue(images: Tensor, turn: Tensor) -> Tensor:
    """Hues turned by ``turn`` (n,) of the circle, value and saturation (HSV) left alone."""
    planes = _planes(images)
    if len(planes) == 1:
        return images
    return _joined(_turned(planes, turn[:, None]), images)


def greyscale(images: Tensor) -> Tensor:
    """The grey value in all channels."""
    return _joined(grey_planes(_planes(images)), images)


def solarise(images: Tensor, threshold: float = 0.5) -> Tensor:
    """Pixels from ``threshold`` on inverted."""
    return torch.where(images >= threshold, 1 - images, images)


# ------------------------------------------------------------------------------------ on the planes


def jitter_planes(planes: Planes, factors: Tensor, order: Tensor) -> Planes:
    """Four slots; in each, every image takes the result of the change whose turn it is. Three of
    the four are one formula, a blend with black, the mean or the grey value, so that a slot costs a
    blend and a turn of hue: far less than reading the images once more for every order."""
    for slot in range(4):
        which = order[:, slot, None]
        factor = factors.gather(1, which)
        grey = _grey(planes)
        other = torch.where(which == CONTRAST, grey.mean(dim=1, keepdim=True), 0.0)
        if len(planes) == 1:
            blended: Planes = (_blend(planes[0], other, factor),)
            kept: Planes = planes
            keep = which >= SATURATION
        else:
            other = torch.where(which == SATURATION, grey, other)
            blended = tuple(_blend(plane, other, factor) for plane in planes)
            kept = _turned(planes, factors[:, HUE, None])
            keep = which == HUE
        planes = chosen(keep, kept, blended)
    return planes


def grey_planes(planes: Planes) -> Planes:
    return (_grey(planes),) * len(planes)


def chosen(gate: Tensor, changed: Planes, planes: Planes) -> Planes:
    """``changed`` where ``gate`` (n, 1) says so, without asking any gate on the host."""
    return tuple(torch.where(gate, *pair) for pair in zip(changed, planes, strict=True))


def _grey(planes: Planes) -> Tensor:
    if len(planes) == 1:
        return planes[0]
    red, green, blue = planes
    return GREY[0] * red + GREY[1] * green + GREY[2] * blue


def _blend(plane: Tensor, other: Tensor | float, factor: Tensor) -> Tensor:
    return (factor * plane + (1 - factor) * other).clamp(0.0, 1.0)


def _turned(planes: Planes, turn: Tensor) -> Planes:
    """Out of HSV again a channel is value - chroma * ramp(sector + 5, 3 or 1), which has no cases;
    sector is the hue in sixths of the circle."""
    red, green, blue = planes
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    # without chroma there is no hue, and none is needed: all channels are the value
    per_chroma = 1 / torch.where(chroma == 0, 1.0, chroma)
    sector = torch.where(
        value == red,
        (green - blue) * per_chroma,
        torch.where(value == green, 2 + (blue - red) * per_chroma, 4 + (red - green) * per_chroma),
    )
    sector = sector + 6 * turn
    return tuple(
        (value - chroma * _ramp(sector + begin)).clamp(0.0, 1.0) for begin in (5.0, 3.0, 1.0)
    )


def _ramp(place: Tensor) -> Tensor:
    """0 to 1, flat at 1, back to 0 and flat at 0 in six steps, again and again."""
    place = place - 6 * torch.floor(place / 6)
    return torch.minimum(place, 4 - place).clamp(0.0, 1.0)


def _planes(images: Tensor) -> Planes:
    check_channels(images.shape[1])
    return images.flatten(2).unbind(1)


def _joined(planes: Planes, like: Tensor) -> Tensor:
    return torch.stack(planes, dim=1).reshape(like.shape)


def check_channels(channels: int) -> None:
    if channels not in (1, 3):
        raise bad_value("channels", channels, "must be 1 (grey) or 3 (red, green, blue)")
