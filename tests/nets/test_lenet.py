"""LeNet: its shapes, its size, what it refuses."""

from __future__ import annotations

import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.nets.lenet import LeNet


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [4, 8, 15, 28, 32])
def test_a_row_of_answers_for_each_image(size: int, channels: int) -> None:
    assert LeNet(channels, size, 7)(torch.rand(3, channels, size, size)).shape == (3, 7)


def test_parameters_are_those_of_five_layers() -> None:
    def expected(channels: int, size: int, classes: int) -> int:
        places = (size // 4) ** 2
        convolutions = (25 * channels + 1) * 6 + (25 * 6 + 1) * 16
        return convolutions + (16 * places + 1) * 120 + 121 * 84 + 85 * classes

    for channels, size, classes in ((1, 8, 10), (1, 28, 10), (3, 32, 100)):
        found = sum(each.numel() for each in LeNet(channels, size, classes).parameters())
        assert found == expected(channels, size, classes)


def test_too_small_images_are_refused() -> None:
    with pytest.raises(UsageError, match="size=3: must be at least 4 pixels for LeNet"):
        LeNet(1, 3, 10)
