"""Random changes of images, drawn for every image on its own and made on the images' device."""

from __future__ import annotations

import torch
from torch import Tensor


def reflect_pad(images: Tensor, shift: int) -> Tensor:
    """Images (n, c, h, w) with ``shift`` pixels more on every side, mirrored at the border.

    By indexing, because PyTorch's own reflection does not take uint8.
    """
    if shift == 0:
        return images
    rows, columns = (_mirrored(size, shift, images.device) for size in images.shape[2:])
    return images[:, :, rows][:, :, :, columns]


def _mirrored(size: int, shift: int, device: torch.device) -> Tensor:
    place = torch.arange(-shift, size + shift, device=device)
    if size == 1:
        return torch.zeros_like(place)
    period = 2 * (size - 1)
    place = place.remainder(period)
    return torch.where(place < size, place, period - place)


def draw_shifts(count: int, shift: int, generator: torch.Generator) -> Tensor:
    """Corners of the windows to cut from padded images: (2, count), each in 0..2 shift."""
    return torch.randint(0, 2 * shift + 1, (2, count), generator=generator, device=generator.device)


def crop_windows(
    images: Tensor, chosen: Tensor, corners: Tensor | None, size: tuple[int, int]
) -> Tensor:
    """Windows of ``size`` from padded ``images`` at ``corners`` (2, b), for the ``chosen`` (b,).

    One gather from a view in which every window is an image; nothing is copied twice.
    """
    if corners is None:
        return images[chosen]
    windows = images.unfold(2, size[0], 1).unfold(3, size[1], 1)
    return windows[chosen, :, corners[0], corners[1]]


def random_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each image left to right with probability one half."""
    coin = torch.rand(len(images), 1, 1, 1, generator=generator, device=images.device) < 0.5
    return torch.where(coin, images.flip(3), images)
