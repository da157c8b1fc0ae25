"""Blur: torchvision's values, and a plain convolution image by image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.errors import UsageError
from rarefy.train.views.blur import default_taps, draw_sigmas, gaussian_blur


def noise(count: int, channels: int, height: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(count, channels, height, width, generator=generator)


def test_blur_is_torchvision_s() -> None:
    with np.load(Path(__file__).with_name("torchvision_values.npz")) as values:
        images, sigmas, wanted = (
            torch.from_numpy(values[name]) for name in ("images", "sigmas", "gaussian_blur")
        )
    found = gaussian_blur(images[:8] / 255, sigmas[:8], 5)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("taps", [1, 3, 9])
def test_blur_is_a_convolution_with_a_kernel_of_its_own(taps: int) -> None:
    images, sigmas = noise(5, 2, 11, 7).double(), torch.tensor([0.1, 0.4, 1.0, 2.0, 9.0])
    away = torch.arange(taps, dtype=torch.float64) - taps // 2
    by_hand = []
    for image, sigma in zip(images, sigmas.double(), strict=True):
        line = torch.exp(-(away**2) / (2 * sigma**2))
        kernel = torch.outer(line, line) / line.sum() ** 2
        wide = functional.pad(image[:, None], [taps // 2] * 4, mode="reflect")
        by_hand.append(functional.conv2d(wide, kernel[None, None])[:, 0])
    found = gaussian_blur(images, sigmas, taps)
    torch.testing.assert_close(found, torch.stack(by_hand), rtol=0, atol=1e-12)


def test_a_plain_image_stays_and_no_width_changes_nothing() -> None:
    plain = torch.full((4, 1, 6, 6), 0.3)
    torch.testing.assert_close(gaussian_blur(plain, torch.linspace(0.1, 2, 4), 5), plain)
    images = noise(4, 3, 6, 6)
    torch.testing.assert_close(gaussian_blur(images, torch.full((4,), 0.01), 5), images)


def test_sigmas_are_uniform() -> None:
    sigmas = draw_sigmas(20_000, (0.5, 1.5), torch.Generator().manual_seed(0))
    tenths = torch.histc(sigmas, bins=10, min=0.5, max=1.5)
    # 2000 a tenth, a standard error of 42: five of them
    assert int(tenths.sum()) == 20_000
    assert float((tenths - 2000).abs().max()) < 212


def test_the_kernel_is_a_tenth_of_the_image() -> None:
    assert [default_taps(size) for size in (8, 32, 64, 96, 224)] == [3, 3, 7, 9, 23]


@pytest.mark.parametrize("taps", [0, -1, 4])
def test_a_kernel_has_a_middle(taps: int) -> None:
    with pytest.raises(UsageError, match=f"taps={taps}: must be odd and at least 1"):
        gaussian_blur(noise(1, 1, 8, 8), torch.ones(1), taps)


def test_an_image_is_mirrored_once() -> None:
    assert gaussian_blur(noise(1, 1, 8, 3), torch.ones(1), 5).shape == (1, 1, 8, 3)
    with pytest.raises(UsageError, match="taps=7: must be below 6: the image is mirrored once"):
        gaussian_blur(noise(1, 1, 8, 3), torch.ones(1), 7)
