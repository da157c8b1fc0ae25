"""Random crops brought to one size, every image with a crop of its own, in one pass over all.

The size is changed as ``functional.interpolate(antialias=True)`` does it (Pillow and torchvision's
``RandomResizedCrop`` likewise). Neighbours are looked up inside the crop only: interpolating across
its border would mix in pixels that are not part of it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rarefy.core.errors import bad_value, unknown

TRIES = 10
"""How often torchvision draws a crop before it takes the central one."""
REACH = {"bilinear": 1, "bicubic": 2}
"""By the way of interpolation: how many pixels to each side have a say when a crop is enlarged."""
CUBIC = -0.5
"""Coefficient of the cubic kernel (Keys 1981): Pillow's, and PyTorch's with antialias."""
MOST_TAPS = 16
"""Taps are written out one by one by the compiler; where there are more, products of matrices."""


def draw_crops(
    count: int,
    height: int,
    width: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    generator: torch.Generator,
) -> Tensor:
    """Crops of images of ``height`` x ``width``: (count, 4), whole numbers (top, left, height,
    width), with the law of torchvision's ``RandomResizedCrop``.

    A share of the area, uniform in ``scale``, and width over height, log-uniform in ``ratio``; the
    first of ten pairs that fits into the image, otherwise the largest central crop of an allowed
    ratio; every place equally likely.
    """
    device = generator.device
    share, aspect = torch.rand(2, count, TRIES, generator=generator, device=device)
    area = height * width * (scale[0] + (scale[1] - scale[0]) * share)
    low, high = (math.log(value) for value in ratio)
    turned = torch.exp(low + (high - low) * aspect)
    wide, tall = torch.sqrt(area * turned).round(), torch.sqrt(area / turned).round()
    fits = (wide > 0) & (wide <= width) & (tall > 0) & (tall <= height)
    first = fits.to(torch.uint8).argmax(dim=1, keepdim=True)
    found = fits.any(dim=1)
    central_tall, central_wide = _central(height, width, ratio)
    tall = torch.where(found, tall.gather(1, first)[:, 0], central_tall)
    wide = torch.where(found, wide.gather(1, first)[:, 0], central_wide)
    free_down, free_right = height - tall, width - wide
    down, right = torch.rand(2, count, generator=generator, device=device)
    # a number just below 1 may be rounded up to one place too many
    top = torch.minimum((down * (free_down + 1)).floor(), free_down)
    left = torch.minimum((right * (free_right + 1)).floor(), free_right)
    top = torch.where(found, top, (free_down / 2).floor())
    left = torch.where(found, left, (free_right / 2).floor())
    return torch.stack([top, left, tall, wide], dim=1).long()


def _central(height: int, width: int, ratio: tuple[float, float]) -> tuple[int, int]:
    if width / height < ratio[0]:
        return max(1, round(width / ratio[0])), width
    if width / height > ratio[1]:
        return height, max(1, round(height * ratio[1]))
    return height, width


def resized_crop(
    images: Tensor, boxes: Tensor, size: int, mirrored: Tensor, way: str = "bilinear"
) -> Tensor:
    """Crops of ``images`` (n, c, h, w) brought to ``size`` x ``size``, left to right where
    ``mirrored``: (m, c, size, size), of the images' floating type (float32 from uint8).

    boxes: (m, 4), top, left, height, width, inside the images. m = n, or a multiple of it for
        several crops of each image, those of the first image first.
    way: "bilinear" or "bicubic"; the latter may leave the range of the pixels a little.
    """
    if way not in REACH:
        raise unknown("way", way, REACH)
    if len(images) == 0 or len(boxes) % len(images) != 0:
        raise bad_value("boxes", tuple(boxes.shape), f"needs a multiple of {len(images)} rows")
    # on a GPU looking up neighbours is a matter of the cache, and no setting for products (TF32,
    # autocast) can spoil it; on a CPU products are faster
    few = max(_taps(side, size, way) for side in images.shape[2:]) <= MOST_TAPS
    form = by_taps if images.is_cuda and few else by_matrices
    return form(images, boxes, size, mirrored, way)


def by_taps(images: Tensor, boxes: Tensor, size: int, mirrored: Tensor, way: str) -> Tensor:
    """``resized_crop`` as a sum over the few neighbours of each new pixel: rows, then columns."""
    channels, height, width = images.shape[1:]
    dtype = torch.promote_types(images.dtype, torch.float32)
    rows, row_weights = _neighbours(boxes[:, 0], boxes[:, 2], height, size, way, dtype)
    columns, column_weights = _neighbours(
        boxes[:, 1], boxes[:, 3], width, size, way, dtype, mirrored
    )
    device = images.device
    crops = torch.arange(len(boxes), device=device)[:, None, None, None]
    sources = crops // (len(boxes) // len(images))
    channel = torch.arange(channels, device=device)[:, None, None]
    across = torch.arange(width, device=device)
    tall = torch.zeros((), dtype=dtype, device=device)
    for row, weight in zip(rows, row_weights, strict=True):
        taken = images[sources, channel, row[:, None, :, None], across]
        tall = tall + weight[:, None, :, None] * taken
    down = torch.arange(size, device=device)[:, None]
    found = torch.zeros((), dtype=dtype, device=device)
    for column, weight in zip(columns, column_weights, strict=True):
        taken = tall[crops, channel, down, column[:, None, None, :]]
        found = found + weight[:, None, None, :] * taken
    return found


def by_matrices(images: Tensor, boxes: Tensor, size: int, mirrored: Tensor, way: str) -> Tensor:
    """``resized_crop`` as two products of matrices an image."""
    count, channels, height, width = images.shape
    dtype = torch.promote_types(images.dtype, torch.float32)
    rows = _matrix(boxes[:, 0], boxes[:, 2], height, size, way, dtype)
    columns = _matrix(boxes[:, 1], boxes[:, 3], width, size, way, dtype, mirrored)
    repeats = len(boxes) // count
    # channels beside columns: then both products are plain batches without another copy
    source = images.permute(0, 2, 1, 3).to(dtype).reshape(count, height * channels, width)
    if repeats > 1:
        source = source.repeat_interleave(repeats, dim=0, output_size=len(boxes))
    with torch.autocast(images.device.type, enabled=False):
        wide = torch.bmm(source, columns.mT)
        found = torch.bmm(rows, wide.reshape(len(boxes), height, channels * size))
    return found.reshape(-1, size, channels, size).permute(0, 2, 1, 3)


def _taps(side: int, size: int, way: str) -> int:
    """Pixels that have a say in a new one, at most: of the largest crop, which is the image."""
    return math.ceil(2 * REACH[way] * max(1.0, side / size))


def _neighbours(
    begin: Tensor,
    length: Tensor,
    side: int,
    size: int,
    way: str,
    dtype: torch.dtype,
    mirrored: Tensor | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """For every new pixel along one axis, tap by tap: the place in the image, the weight; each
    (m, size). Taps outside the crop have weight 0."""
    centre, wide = _centres(length, size, dtype, mirrored)
    extent = length.to(dtype)[:, None]
    first = (centre - REACH[way] * wide + 0.5).floor().clamp(min=0)
    places, weights = [], []
    total = torch.zeros((), dtype=dtype, device=length.device)
    for tap in range(_taps(side, size, way)):
        place = first + tap
        weight = _kernel((place + 0.5 - centre) / wide, way)
        weight = torch.where(place < extent, weight, 0.0)
        # the last clamp changes nothing; it tells the compiler that no place is out of bounds
        inside = torch.minimum(place, extent - 1) + begin.to(dtype)[:, None]
        places.append(inside.long().clamp(0, side - 1))
        weights.append(weight)
        total = total + weight
    return places, [weight / total for weight in weights]


def _matrix(
    begin: Tensor,
    length: Tensor,
    side: int,
    size: int,
    way: str,
    dtype: torch.dtype,
    mirrored: Tensor | None = None,
) -> Tensor:
    """The weights of all pixels along one axis for all new ones: (m, size, side)."""
    centre, wide = _centres(length, size, dtype, mirrored)
    place = torch.arange(side, dtype=dtype, device=length.device) - begin.to(dtype)[:, None]
    place = place[:, None, :]
    weight = _kernel((place + 0.5 - centre[:, :, None]) / wide[:, :, None], way)
    inside = (place >= 0) & (place < length.to(dtype)[:, None, None])
    weight = torch.where(inside, weight, 0.0)
    return weight / weight.sum(dim=2, keepdim=True)


def _centres(
    length: Tensor, size: int, dtype: torch.dtype, mirrored: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Where the middle of each new pixel lies in the crop, (m, size), and by how much the kernel is
    stretched, (m, 1): not at all where a crop is enlarged."""
    place = torch.arange(size, dtype=dtype, device=length.device)[None]
    if mirrored is not None:
        place = torch.where(mirrored[:, None], size - 1 - place, place)
    step = length.to(dtype)[:, None] / size
    return step * (place + 0.5), step.clamp(min=1.0)


def _kernel(distance: Tensor, way: str) -> Tensor:
    away = distance.abs()
    if way == "bilinear":
        return (1 - away).clamp(min=0.0)
    near = ((CUBIC + 2) * away - (CUBIC + 3)) * away * away + 1
    far = CUBIC * (((away - 5) * away + 8) * away - 4)
    return torch.where(away < 1, near, torch.where(away < 2, far, 0.0))
