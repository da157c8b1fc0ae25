"""Writes torchvision_values.npz: what torchvision's functions for tensors make of small images.

    python tests/train/views/record_torchvision.py

Needs torchvision, which the tests themselves do not: they compare with the values kept here.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import torch
import torchvision
from torch import Tensor
from torchvision.transforms import _functional_tensor as reference

SEED, SIDE = 20, 6
CHANGES = (
    reference.adjust_brightness,
    reference.adjust_contrast,
    reference.adjust_saturation,
    reference.adjust_hue,
)
ORDERS = list(permutations(range(4)))


def inputs() -> Tensor:
    """24 images: noise, noise of few levels (channels that tie), near grey, plain colours."""
    generator = torch.Generator().manual_seed(SEED)

    def noise(low: int, high: int, step: int = 1) -> Tensor:
        shape = (6, 3, SIDE, SIDE)
        return step * torch.randint(low, high, shape, generator=generator, dtype=torch.uint8)

    corners = torch.tensor([[0, 0, 0], [255] * 3, [255, 0, 0], [0, 255, 0], [0, 0, 255], [7] * 3])
    plain = corners.to(torch.uint8)[:, :, None, None].expand(-1, -1, SIDE, SIDE)
    return torch.cat([noise(0, 256), noise(0, 4, 85), noise(126, 129), plain])


def strengths() -> Tensor:
    """Brightness, contrast, saturation in [0.2, 1.8], hue in [-0.5, 0.5]: (24, 4)."""
    drawn = torch.rand(24, 4, generator=torch.Generator().manual_seed(SEED + 1))
    return drawn * torch.tensor([1.6, 1.6, 1.6, 1.0]) + torch.tensor([0.2, 0.2, 0.2, -0.5])


def jittered(image: Tensor, factors: list[float], order: tuple[int, ...]) -> Tensor:
    for which in order:
        image = CHANGES[which](image, factors[which])
    return image


def main() -> None:
    stored, factors = inputs(), strengths()
    images, rows = stored / 255, factors.tolist()
    sigmas = (0.1 + factors[:, 0]).tolist()
    pairs = list(zip(images, rows, strict=True))
    found = {
        change.__name__: torch.stack([change(image, row[which]) for image, row in pairs])
        for which, change in enumerate(CHANGES)
    }
    for name, channels in (("jitter", 3), ("jitter_grey", 1)):
        found[name] = torch.stack(
            [
                jittered(image[:channels], row, order)
                for (image, row), order in zip(pairs, ORDERS, strict=True)
            ]
        )
    found["rgb_to_grayscale"] = reference.rgb_to_grayscale(images, 1)
    found["solarize"] = reference.solarize(images, 0.5)
    found["gaussian_blur"] = torch.stack(
        [
            reference.gaussian_blur(image, [5, 5], [sigma, sigma])
            for image, sigma in zip(images[:8], sigmas, strict=False)
        ]
    )
    np.savez_compressed(
        Path(__file__).with_name("torchvision_values.npz"),
        version=np.array(torchvision.__version__),
        images=stored.numpy(),
        factors=factors.numpy(),
        orders=np.array(ORDERS),
        sigmas=np.array(sigmas, dtype=np.float32),
        **{name: values.numpy() for name, values in found.items()},
    )


if __name__ == "__main__":
    main()
