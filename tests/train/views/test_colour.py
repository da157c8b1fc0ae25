"""Colours and blur: torchvision's values, image by image, and what must hold for any image."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import Tensor
from torch.nn import functional

from rarefy.core.errors import UsageError
from rarefy.train.views import colour
from rarefy.train.views.blur import default_taps, draw_sigmas, gaussian_blur
from rarefy.train.views.colour import BRIGHTNESS, CONTRAST, HUE, SATURATION

with np.load(Path(__file__).with_name("torchvision_values.npz")) as stored:
    # of torchvision 0.29.2 (record_torchvision.py writes them)
    VALUES = {name: torch.from_numpy(stored[name]) for name in stored if name != "version"}

IMAGES, FACTORS, ORDERS = VALUES["images"] / 255, VALUES["factors"], VALUES["orders"]
TOLERANCE = 1e-5
"""A four-hundredth of a grey level: float32 in another order of operations, chosen beforehand."""
ONE_BY_ONE: dict[int, Callable[[Tensor, Tensor], Tensor]] = {
    BRIGHTNESS: colour.brightness,
    CONTRAST: colour.contrast,
    SATURATION: colour.saturation,
    HUE: colour.hue,
}


def same(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=0, atol=TOLERANCE)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(count: int = 24, channels: int = 3) -> Tensor:
    return torch.rand(count, channels, 5, 4, generator=generator(1))


@pytest.mark.parametrize("which", ONE_BY_ONE)
def test_each_change_is_torchvision_s(which: int) -> None:
    change = ONE_BY_ONE[which]
    found = change(IMAGES, FACTORS[:, which])
    same(found, VALUES[f"adjust_{change.__name__}"])
    assert float((found - IMAGES).abs().max()) > 0.1


def test_jitter_is_torchvision_s_in_all_24_orders() -> None:
    assert sorted(map(tuple, ORDERS.tolist())) == sorted(permutations(range(4)))
    same(colour.jitter(IMAGES, FACTORS, ORDERS), VALUES["jitter"])


def test_jitter_of_grey_images_is_torchvision_s() -> None:
    same(colour.jitter(IMAGES[:, :1], FACTORS, ORDERS), VALUES["jitter_grey"])


def test_greyscale_and_solarise_are_torchvision_s() -> None:
    grey = colour.greyscale(IMAGES)
    same(grey, VALUES["rgb_to_grayscale"].expand_as(grey))
    assert torch.equal(colour.solarise(IMAGES), VALUES["solarize"])


def test_the_order_matters() -> None:
    images, factors = IMAGES[:6], FACTORS[:6]
    first, second = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]]).expand(6, 2, 4).unbind(1)
    one, other = (colour.jitter(images, factors, order) for order in (first, second))
    assert float((one - other).abs().max()) > 0.01


def test_an_image_changes_as_it_does_alone() -> None:
    together = colour.jitter(IMAGES, FACTORS, ORDERS)
    for row in range(len(IMAGES)):
        alone = slice(row, row + 1)
        same(colour.jitter(IMAGES[alone], FACTORS[alone], ORDERS[alone]), together[alone])


def test_one_channel_has_no_colours() -> None:
    grey, factor = noise(channels=1), torch.linspace(-0.5, 0.5, 24)
    assert torch.equal(colour.saturation(grey, factor.abs()), grey)
    assert torch.equal(colour.hue(grey, factor), grey)
    assert torch.equal(colour.greyscale(grey), grey)


@pytest.mark.parametrize("change", [colour.greyscale, lambda images: colour.hue(images, None)])
def test_two_channels_are_refused(change: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(UsageError, match="channels=2: must be 1 .grey. or 3 .red, green, blue"):
        change(noise(channels=2))


@given(turn=some.floats(-0.5, 0.5), seed=some.integers(0, 1000))
def test_hue_leaves_the_largest_and_the_smallest_channel(turn: float, seed: int) -> None:
    images = torch.rand(8, 3, 4, 4, generator=generator(seed))
    found = colour.hue(images, torch.full((8,), turn))
    same(found.amax(dim=1), images.amax(dim=1))
    same(found.amin(dim=1), images.amin(dim=1))
    same(colour.hue(found, torch.full((8,), -turn)), images)


def test_a_third_of_the_circle_passes_the_channels_on() -> None:
    same(colour.hue(noise(), torch.full((24,), 1 / 3)), noise().roll(1, dims=1))
    same(colour.hue(noise(), torch.full((24,), -1 / 3)), noise().roll(-1, dims=1))


@given(seed=some.integers(0, 1000))
def test_pixels_stay_pixels(seed: int) -> None:
    factors, order = colour.draw_jitter(24, (2.0, 2.0, 2.0, 0.5), generator(seed))
    found = colour.jitter(noise(), factors, order)
    assert float(found.min()) >= 0 and float(found.max()) <= 1


def test_no_strength_no_change() -> None:
    factors, order = colour.draw_jitter(24, (0.0, 0.0, 0.0, 0.0), generator())
    same(colour.jitter(noise(), factors, order), noise())


def test_strengths_are_uniform_between_their_bounds() -> None:
    factors, _ = colour.draw_jitter(20_000, (0.4, 0.2, 1.5, 0.1), generator())
    for column, (low, high) in enumerate([(0.6, 1.4), (0.8, 1.2), (0.0, 2.5), (-0.1, 0.1)]):
        share = (factors[:, column] - low) / (high - low)
        assert float(share.min()) >= -1e-6 and float(share.max()) <= 1 + 1e-6
        # 2000 a tenth, a standard error of 42: five of them
        tenths = torch.histc(share, bins=10, min=0.0, max=1.0)
        assert float((tenths - 2000).abs().max()) < 212


def test_all_orders_are_equally_likely() -> None:
    _, order = colour.draw_jitter(24_000, (0.4, 0.4, 0.4, 0.1), generator())
    found = (order * torch.tensor([64, 16, 4, 1])).sum(dim=1).unique(return_counts=True)[1]
    # 1000 of each, a standard error of 31: five of them
    assert len(found) == 24
    assert int((found - 1000).abs().max()) < 155


# --------------------------------------------------------------------------------------------- blur


def noise_of(count: int, channels: int, height: int, width: int) -> Tensor:
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
    images, sigmas = noise_of(5, 2, 11, 7).double(), torch.tensor([0.1, 0.4, 1.0, 2.0, 9.0])
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
    images = noise_of(4, 3, 6, 6)
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
        gaussian_blur(noise_of(1, 1, 8, 8), torch.ones(1), taps)


def test_an_image_is_mirrored_once() -> None:
    assert gaussian_blur(noise_of(1, 1, 8, 3), torch.ones(1), 5).shape == (1, 1, 8, 3)
    with pytest.raises(UsageError, match="taps=7: must be below 6: the image is mirrored once"):
        gaussian_blur(noise_of(1, 1, 8, 3), torch.ones(1), 7)
