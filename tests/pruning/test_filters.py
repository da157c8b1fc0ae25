"""A layer's rows are the weights that lead to one output, whatever the layer's layout is."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from rarefy.pruning.filters import Filters

LAYERS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "linear": (nn.Linear(5, 3), (2, 5)),
    "conv1d": (nn.Conv1d(4, 6, 3), (2, 4, 7)),
    "conv2d": (nn.Conv2d(3, 4, (2, 3)), (2, 3, 5, 6)),
    "conv3d": (nn.Conv3d(2, 3, 2), (2, 2, 3, 3, 3)),
    "grouped": (nn.Conv2d(6, 4, 3, groups=2), (2, 6, 5, 5)),
    "depthwise": (nn.Conv2d(4, 8, 3, groups=4), (2, 4, 5, 5)),
    "transposed": (nn.ConvTranspose2d(3, 4, 2), (2, 3, 4, 4)),
    "transposed 1d": (nn.ConvTranspose1d(4, 6, 3, stride=2), (2, 4, 5)),
    "transposed 3d": (nn.ConvTranspose3d(2, 3, 2), (2, 2, 2, 2, 2)),
    "transposed grouped": (nn.ConvTranspose2d(6, 9, (2, 3), groups=3), (2, 6, 4, 4)),
    "transposed depthwise": (nn.ConvTranspose1d(4, 4, 3, groups=4), (2, 4, 5)),
}


def leading_to(layer: nn.Module, shape: tuple[int, ...]) -> list[Tensor]:
    """By definition: which weights output channel c depends on at all, for each c."""
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0)) + 0.1
    output = layer(x)
    channels = output.movedim(-1 if isinstance(layer, nn.Linear) else 1, 0)
    weight = layer.weight
    return [
        torch.autograd.grad(channel.sum(), weight, retain_graph=True)[0] != 0
        for channel in channels
    ]


@pytest.mark.parametrize("kind", LAYERS)
def test_a_row_has_exactly_the_weights_that_its_output_depends_on(kind: str) -> None:
    layer, shape = LAYERS[kind]
    weight = layer.weight
    filters = Filters.of(layer, weight)
    expected = leading_to(layer, shape)
    assert filters.count == len(expected)
    place = torch.arange(weight.numel()).reshape(weight.shape)
    for row, leads in zip(filters.rows(place), expected, strict=True):
        assert sorted(row.tolist()) == place[leads].tolist()
        assert len(row) == filters.size


@pytest.mark.parametrize("kind", LAYERS)
def test_rows_and_back_is_the_weight_itself(kind: str) -> None:
    weight = LAYERS[kind][0].weight.detach()
    filters = Filters.of(LAYERS[kind][0], weight)
    assert torch.equal(filters.weights(filters.rows(weight)), weight)
    rows = torch.arange(weight.numel()).reshape(filters.count, filters.size)
    assert torch.equal(filters.rows(filters.weights(rows)), rows)


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.lists(st.integers(1, 3), max_size=3)
)
def test_grouped_transposed_layouts_round_trip(
    groups: int, inputs: int, outputs: int, kernel: list[int]
) -> None:
    filters = Filters((groups * inputs, outputs, *kernel), transposed_groups=groups)
    weight = torch.randn(filters.shape)
    assert filters.count == groups * outputs
    assert filters.dimensions == (groups * outputs, inputs, *kernel)
    assert torch.equal(filters.weights(filters.rows(weight)), weight)


def test_rows_of_a_grouped_transposed_convolution_by_hand() -> None:
    """2 groups, each 2 inputs and 2 outputs, kernel 1: entry (i, o) leads from input i to output o
    of the group of i."""
    layer = nn.ConvTranspose1d(4, 4, 1, groups=2)
    weight = torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8]])[:, :, None]
    rows = Filters.of(layer, weight).rows(weight)
    assert rows.tolist() == [[1, 3], [2, 4], [5, 7], [6, 8]]


@pytest.mark.parametrize(
    ("kind", "dimensions"),
    [
        ("linear", (3, 5)),
        ("conv2d", (4, 3, 2, 3)),
        ("grouped", (4, 3, 3, 3)),
        ("depthwise", (8, 1, 3, 3)),
        ("transposed", (4, 3, 2, 2)),
        ("transposed grouped", (9, 2, 2, 3)),
    ],
)
def test_dimensions_are_outputs_inputs_and_kernel(kind: str, dimensions: tuple[int, ...]) -> None:
    layer, _ = LAYERS[kind]
    assert Filters.of(layer, layer.weight).dimensions == dimensions


@pytest.mark.parametrize("kind", LAYERS)
def test_norms_are_those_of_the_weights_that_lead_to_an_output(kind: str) -> None:
    layer, shape = LAYERS[kind]
    weight = layer.weight.detach()
    norms = Filters.of(layer, weight).norms(weight)
    expected = torch.stack([weight[leads].norm() for leads in leading_to(layer, shape)])
    # sums of at most 24 float32 squares
    torch.testing.assert_close(norms, expected, rtol=1e-6, atol=0)
