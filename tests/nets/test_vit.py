"""The small Vision Transformer: tokens, attention, cost, what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from rarefy.core.errors import UsageError
from rarefy.nets.vit import (
    PLACE_SPREAD,
    ViT,
    _Attention,
    default_depth,
    default_patch,
    tokens_per_side,
)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [2, 8, 13, 28, 30, 32])
def test_a_row_of_answers_for_each_image(size: int, channels: int) -> None:
    with torch.no_grad():
        assert ViT(channels, size, 7)(torch.rand(3, channels, size, size)).shape == (3, 7)


def test_patches_of_the_known_sets() -> None:
    assert [default_patch(size) for size in (8, 14, 16, 28, 32, 33, 64)] == [2, 2, 2, 4, 4, 8, 8]
    assert [default_depth(size) for size in (8, 15, 16, 28, 32)] == [3, 3, 6, 6, 6]
    assert ViT(1, 28, 10).place.shape == (1, 49, 64)
    for size in range(2, 200):
        assert tokens_per_side(size, default_patch(size)) ** 2 <= 64


def test_pixels_that_hang_over_are_seen() -> None:
    torch.manual_seed(0)
    model = ViT(1, 9, 10)
    images = torch.rand(1, 1, 9, 9, requires_grad=True)
    model(images).square().sum().backward()
    assert images.grad is not None and bool((images.grad != 0).all())


def test_attention_is_that_of_pytorch() -> None:
    torch.manual_seed(0)
    ours = _Attention(8, 2).double()
    theirs = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.inward.weight,
            "in_proj_bias": ours.inward.bias,
            "out_proj.weight": ours.outward.weight,
            "out_proj.bias": ours.outward.bias,
        }
    )
    tokens = torch.randn(3, 5, 8, dtype=torch.float64)
    expected = theirs(tokens, tokens, tokens, need_weights=False)[0]
    torch.testing.assert_close(ours(tokens), expected, rtol=1e-12, atol=1e-12)


def test_parameters_and_multiply_adds_for_mnist() -> None:
    tokens, width = 49, 64
    block = 4 * width**2 + 8 * width**2  # three projections in, one out; a perceptron of 4 widths
    biases = 4 * width + 5 * width + 4 * width  # attention, perceptron, two normalisations
    embedding, norm, head = 17 * width + tokens * width, 2 * width, 10 * width + 10
    weights = embedding + 6 * (block + biases) + norm + head
    assert sum(each.numel() for each in ViT(1, 28, 10).parameters()) == weights


def test_every_matrix_is_a_layer_that_pruners_know() -> None:
    model = ViT(1, 8, 10)
    layers = {
        f"{name}.weight"
        for name, each in model.named_modules()
        if isinstance(each, (nn.Linear, nn.Conv2d))
    }
    assert {name for name, each in model.named_parameters() if each.ndim > 1} == layers | {"place"}


def test_first_weights() -> None:
    torch.manual_seed(0)
    model = ViT(1, 28, 10)
    norms = {name for name, each in model.named_modules() if isinstance(each, nn.LayerNorm)}
    for name, each in model.named_parameters():
        if each.ndim == 1:
            owner, _, kind = name.rpartition(".")
            expected = 1 if owner in norms and kind == "weight" else 0
            assert bool((each == expected).all()), name
        else:  # five standard errors of a spread
            expected = PLACE_SPREAD if name == "place" else each[0].numel() ** -0.5
            assert abs(each.std().item() / expected - 1) < 5 / math.sqrt(2 * each.numel()), name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"patch": 9}, "patch=9: must be from 1 to the images' size, 8"),
        ({"patch": 0}, "patch=0: must be from 1"),
        ({"heads": 5}, "heads=5: must divide the width, 64"),
        ({"heads": 0}, "heads=0: must divide"),
        ({"depth": 0}, "depth=0: must be at least 1"),
    ],
)
def test_what_is_refused(arguments: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ViT(1, 8, 10, **arguments)
