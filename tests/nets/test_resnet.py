"""ResNet-18 for small images: its size, its cost, how its blocks begin."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from rarefy.nets.resnet import ResNet18


@pytest.mark.quick("32-3", "8-1")
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [8, 28, 32])
def test_a_row_of_answers_for_each_image(size: int, channels: int) -> None:
    with torch.no_grad():
        model = ResNet18(channels, size, 7)
        assert model(torch.rand(2, channels, size, size)).shape == (2, 7)


def test_parameters_and_multiply_adds() -> None:
    """Counted by hand: a stage halves the side and doubles the width."""
    stem, products = 9 * 3 * 64, 9 * 3 * 64 * 32**2
    weights, norms, narrow = stem, 64, 64
    for wide, side in ((64, 32), (128, 16), (256, 8), (512, 4)):
        both = 9 * narrow * wide + 3 * 9 * wide * wide + (narrow * wide if narrow != wide else 0)
        weights, products = weights + both, products + both * side**2
        norms += (5 if narrow != wide else 4) * wide
        narrow = wide
    parameters = sum(each.numel() for each in ResNet18(3, 32, 10).parameters())
    assert parameters == weights + 2 * norms + 512 * 10 + 10 == 11_173_962


def test_blocks_begin_as_their_shortcuts() -> None:
    torch.manual_seed(0)
    model = ResNet18(1, 8, 10).eval()
    images = torch.rand(2, 64, 8, 8)
    block = model.blocks[1]
    with torch.no_grad():
        assert torch.equal(block(images), functional.relu(images))
        plain = ResNet18(1, 8, 10, zero_last=False).blocks[1].eval()
        assert not torch.allclose(plain(images), functional.relu(images))


@pytest.mark.parametrize("zero_last", [True, False])
def test_first_gradients_of_a_block(zero_last: bool) -> None:
    """What the docstring warns of: none reach a block's convolutions while its last factor is 0."""
    torch.manual_seed(0)
    model = ResNet18(1, 8, 10, zero_last=zero_last)
    functional.cross_entropy(model(torch.rand(4, 1, 8, 8)), torch.arange(4)).backward()
    for name in ("blocks.0.first.weight", "blocks.5.second.weight"):
        gradient = model.get_parameter(name).grad
        assert gradient is not None and bool(gradient.any()) is not zero_last
    head = model.head.weight.grad
    assert head is not None and head.any()
