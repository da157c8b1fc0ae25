"""Gaussian blur, every image with a width of its own."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.errors import bad_value


def draw_sigmas(count: int, sigma: tuple[float, float], generator: torch.Generator) -> Tensor:
    """Standard deviations in pixels, uniform: (count,)."""
    drawn = torch.rand(count, generator=generator, device=generator.device)
    return sigma[0] + (sigma[1] - sigma[0]) * drawn


def default_taps(size: int) -> int:
    """Pixels that are averaged along an axis: a tenth of the image (SimCLR), odd, at least 3."""
    return max(3, size // 10 // 2 * 2 + 1)


def gaussian_blur(images: Tensor, sigmas: Tensor, taps: int) -> Tensor:
    """``images`` (n, c, h, w) blurred with ``sigmas`` (n,); the kernel has ``taps`` pixels along
    each axis (odd) and sum 1. Beyond the border the image is mirrored, as in torchvision."""
    if taps < 1 or taps % 2 == 0:
        raise bad_value("taps", taps, "must be odd and at least 1")
    reach = taps // 2
    if reach >= min(images.shape[2:]):
        raise bad_value(
            "taps", taps, f"must be below {2 * min(images.shape[2:])}: the image is mirrored once"
        )
    away = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    kernel = torch.exp(-0.5 * (away / sigmas.to(images.dtype)[:, None]) ** 2)
    kernel = kernel / kernel.sum(dim=1, keepdim=True)
    weights = kernel[:, :, None, None, None].unbind(1)
    height, width = images.shape[2:]
    wide = functional.pad(images, (reach, reach, 0, 0), mode="reflect")
    across = [weight * wide[..., tap : tap + width] for tap, weight in enumerate(weights)]
    # one after the other: a sum over a stack would first be written out
    tall = functional.pad(_added(across), (0, 0, reach, reach), mode="reflect")
    down = [weight * tall[:, :, tap : tap + height] for tap, weight in enumerate(weights)]
    return _added(down)


def _added(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
