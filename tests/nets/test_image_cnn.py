"""The CNN for small images (how often it halves, its width, its cost), and LeNet."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn

from rarefy.core.errors import UsageError
from rarefy.nets.image_cnn import LEAST, ImageCNN, default_width, halvings
from rarefy.nets.lenet import LeNet
from rarefy.pruning.finishing.removal import remove_zero_filters


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [1, 8, 9, 28, 32, 50])
def test_a_row_of_answers_for_each_image(size: int, channels: int) -> None:
    model = ImageCNN(channels, size, 7, width=4)
    assert model(torch.rand(3, channels, size, size)).shape == (3, 7)


@pytest.mark.parametrize("size", range(1, 70))
def test_halving_stops_before_the_image_is_gone(size: int) -> None:
    count = halvings(size)
    model = ImageCNN(1, size, 2, width=1)
    assert model.layers(torch.rand(2, 1, size, size)).shape[2:] == (model.left, model.left)
    assert model.left >= min(LEAST, size)
    if count < 4:  # another halving would leave one pixel
        assert model.left <= LEAST
    assert sum(layer.halve for layer in model.layers) == count  # type: ignore[misc]


def test_the_sizes_of_the_known_sets() -> None:
    assert [halvings(size) for size in (8, 28, 32, 64)] == [2, 4, 4, 4]
    assert [default_width(size) for size in (8, 15, 16, 28, 31, 32, 64)] == [
        *(16, 16, 32, 32, 32),
        *(64, 64),
    ]


def test_parameters_at_the_size_of_cifar() -> None:
    widths = (3, 64, 128, 128, 256, 256, 256, 256)
    weights = sum(9 * narrow * wide + 2 * wide for narrow, wide in pairwise(widths)) + 2570
    assert sum(each.numel() for each in ImageCNN(3, 32, 10).parameters()) == weights


def test_tensor_cores_are_filled() -> None:
    found = [each for each in ImageCNN(3, 32, 10).modules() if isinstance(each, nn.Conv2d)]
    assert all(each.out_channels % 64 == 0 for each in found)
    assert all(each.in_channels % 64 == 0 for each in found[1:])


def test_no_bias_before_a_normalisation() -> None:
    model = ImageCNN(3, 32, 10)
    assert all(each.bias is None for each in model.modules() if isinstance(each, nn.Conv2d))


def test_first_weights_are_those_of_he() -> None:
    """Variance 2 over the number of outputs that one input has a part in."""
    torch.manual_seed(0)
    for width in (8, 64):
        weight = ImageCNN(3, 32, 10, width=width).get_parameter("layers.1.convolution.weight")
        # the narrower has 1,152 weights: a tenth is nearly five standard errors of their spread
        assert weight.std().item() == pytest.approx((2 / (9 * 2 * width)) ** 0.5, rel=0.1)


def test_filters_of_zeros_can_be_removed_everywhere() -> None:
    torch.manual_seed(0)
    model = ImageCNN(1, 8, 10, width=4).eval()
    with torch.no_grad():
        for each in model.modules():
            if isinstance(each, nn.Conv2d):
                each.weight[::2] = 0
    _, removal = remove_zero_filters(model, (torch.rand(2, 1, 8, 8),))
    assert len(removal.layers) == 7
    assert all(len(each.removed) == each.filters // 2 for each in removal.layers)


def test_a_width_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="width=0: must be at least 1"):
        ImageCNN(1, 8, 10, width=0)


# -------------------------------------------------------------------------------------------- LeNet


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [4, 8, 15, 28, 32])
def test_lenet_gives_a_row_of_answers_for_each_image(size: int, channels: int) -> None:
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
