"""A function of images and what was drawn for them, called for some images at a time, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rarefy.core.compilation import or_plain, own_code
from rarefy.train.views.view_parameters import VIEWS, ViewParameters, pad_rows

Change = Callable[[Tensor, ViewParameters], Tensor]
"""(n, c, h, w) and its parameters -> (VIEWS n, c, size, size), in the order of the parameters."""

PART_BYTES = {"cuda": 128 * 1024**2, "cpu": 2 * 1024**2}
"""Views are made so many at a time, counted in float32: on a GPU a few large operations, on a CPU
what stays in its cache from one operation to the next."""
SMALLEST = 64
"""Fewer images than these are filled up to them before a compiled function sees them."""


def images_at_once(count: int, image_bytes: int, device: torch.device) -> int:
    """Images in a part: a power of 2, so that sets of many sizes make do with a few shapes."""
    limit = PART_BYTES.get(device.type, PART_BYTES["cuda"]) // (VIEWS * image_bytes)
    return min(_power_from(count), max(1, _power_from(limit + 1) // 2))


def _power_from(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def in_parts(
    change: Change,
    images: Tensor,
    drawn: ViewParameters,
    at_once: int,
    out: Tensor,
    same_shape: bool,
) -> Tensor:
    """``out`` (VIEWS, n, c, size, size), filled part by part. same_shape: also the last part has
    ``at_once`` images (its last image several times), because every shape is compiled anew."""
    for first in range(0, len(images), at_once):
        last = min(first + at_once, len(images))
        some, theirs = images[first:last], drawn.of_images(first, last)
        if same_shape:
            some, theirs = pad_rows(some, at_once - len(some)), theirs.pad_to(at_once)
        views = change(some, theirs)
        out[:, first:last] = views.unflatten(0, (-1, VIEWS)).transpose(0, 1)[:, : last - first]
    return out


def compiled(change: Change, backend: str | Callable[..., Any] = "inductor") -> Change:
    """``change`` compiled as one graph for each shape; where no compiler works, as it is."""
    kernel = torch.compile(own_code(change), fullgraph=True, dynamic=False, backend=backend)
    return or_plain(kernel, change, "making views")
