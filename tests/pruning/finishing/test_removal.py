"""Zero filters taken out for real: the same outputs from a smaller network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from zero_filters import lived_in, own, removed, zero

from rarefy.pruning.finishing.removal import LayerRemoval, remove_zero_filters


@pytest.fixture(autouse=True)
def same_weights() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield


# ------------------------------------------------------------------------------- what gets smaller


def test_an_mlp_loses_its_zero_neurons() -> None:
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 3))
    zero(model[0], 1, 4, 7)
    zero(model[2], 0)
    smaller, layers, report = removed(model, torch.randn(2, 5))
    assert layers["0"] == LayerRemoval("0", 8, (1, 4, 7), {})
    assert layers["2"] == LayerRemoval("2", 6, (0,), {})
    assert [tuple(p.shape) for p in smaller.parameters()] == [
        (5, 5), (5,), (5, 5), (5,), (3, 5), (3,)
    ]  # fmt: skip
    assert (smaller[2].in_features, smaller[2].out_features) == (5, 5)
    assert str(report).splitlines() == [
        "123 parameters before, 78 after",
        "0: 3 of 8 filters removed",
        "2: 1 of 6 filters removed",
    ]


def stack(padding: int = 0, bias: bool = True) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1, bias=bias), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 5, 3, padding=padding), nn.BatchNorm2d(5), nn.ReLU(inplace=True),
        nn.Dropout2d(0.5), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(5 * 2 * 2, 7), nn.Tanh(),
        nn.Linear(7, 3),
    )  # fmt: skip


def test_convolutions_normalised_pooled_and_flattened() -> None:
    model = lived_in(stack())
    zero(model[0], 0, 3)
    zero(model[4], 2, 4)
    zero(model[10], 6)
    smaller, layers, _ = removed(model, torch.randn(2, 2, 12, 12))
    assert [layers[name].removed for name in ("0", "4", "10")] == [(0, 3), (2, 4), (6,)]
    assert smaller[0].weight.shape == (4, 2, 3, 3) and smaller[1].num_features == 4
    assert smaller[1].running_mean.shape == smaller[1].bias.shape == (4,)
    assert smaller[4].weight.shape == (3, 4, 3, 3) and smaller[10].weight.shape == (6, 12)
    plain = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout2d(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 3),
    )  # fmt: skip
    plain.load_state_dict(smaller.state_dict())  # nothing but smaller shapes
    smaller.train()(torch.randn(4, 2, 12, 12)).sum().backward()  # and it can go on learning
    assert smaller[0].weight.grad is not None


def test_a_constant_goes_to_the_bias_but_not_across_zero_padding() -> None:
    for padding, gone in ((0, (0, 3)), (1, (3,))):
        model = stack(padding)
        zero(model[0], 0, 3)
        with torch.no_grad():
            model[1].bias[0], model[1].bias[3] = 0.7, -0.7  # behind ReLU: 0.7 and 0
        model[10] = nn.LazyLinear(7)
        model(torch.zeros(2, 2, 12, 12))
        _, layers, _ = removed(model, torch.randn(2, 2, 12, 12))
        assert layers["0"].removed == gone
        if padding:
            assert layers["0"].kept == {0: "is a constant other than zero at the zero padding of 4"}


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_that_repeats_what_is_there_takes_constants(mode: str) -> None:
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.Sigmoid(), nn.Conv2d(4, 3, 3, padding=1, padding_mode=mode)
    )
    zero(model[0], 1)
    _, layers, _ = removed(model, torch.randn(2, 2, 8, 8))
    assert layers["0"].removed == (1,)


@pytest.mark.parametrize(("kernel", "gone"), [(1, (1,)), (3, ())])
def test_same_padding_adds_zeros_unless_the_kernel_is_one_wide(
    kernel: int, gone: tuple[int, ...]
) -> None:
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.Sigmoid(), nn.Conv1d(4, 3, kernel, padding="same"))
    zero(model[0], 1)
    _, layers, _ = removed(model, torch.randn(2, 2, 8))
    assert layers["0"].removed == gone


def test_a_reader_without_bias_gets_one_only_for_a_constant() -> None:
    for activation, gains in ((nn.ReLU(), False), (nn.Sigmoid(), True)):
        model = nn.Sequential(nn.Linear(4, 5), activation, nn.Linear(5, 3, bias=False))
        zero(model[0], 2)
        smaller, layers, _ = removed(model, torch.randn(2, 4))
        assert layers["0"].removed == (2,)
        assert (smaller[2].bias is not None) is gains


def test_a_filter_with_a_bias_goes_only_when_asked() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3))
    with torch.no_grad():
        model[0].weight[2] = 0.0
    _, layers, _ = removed(model, torch.randn(2, 4))
    assert layers["0"] == LayerRemoval("0", 5, (), {2: "has a bias, so that it gives a constant"})
    _, layers, _ = removed(model, torch.randn(2, 4), constant=True)
    assert layers["0"] == LayerRemoval("0", 5, (2,), {})


def test_a_filter_that_read_removed_filters_only_goes_too() -> None:
    model = nn.Sequential(
        nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 2)
    )
    zero(model[0], 1, 3)
    zero(model[2], 4)
    with torch.no_grad():
        model[2].weight[2, [0, 2, 4]] = 0.0  # reads 1 and 3 only
        model[2].bias[2] = 0.0
    _, layers, _ = removed(model, torch.randn(2, 4))
    assert layers["0"].removed == (1, 3)
    assert layers["2"].removed == (2, 4)  # numbers are those of the model given


def test_depthwise_convolutions_on_the_way_lose_the_channel_too() -> None:
    model = lived_in(nn.Sequential(
        nn.Conv2d(3, 6, 1), nn.ReLU6(), nn.Conv2d(6, 6, 3, groups=6), nn.BatchNorm2d(6),
        nn.Hardswish(), nn.Conv2d(6, 4, 1),
    ))  # fmt: skip
    zero(model[0], 1, 5)
    smaller, layers, _ = removed(model, torch.randn(2, 3, 8, 8))
    assert layers["0"].removed == layers["2"].removed == (1, 5)
    assert smaller[2].groups == smaller[2].in_channels == smaller[2].out_channels == 4
    zero(model[2], 0)
    _, layers, _ = removed(model, torch.randn(2, 3, 8, 8))
    assert layers["2"].kept == {0: "belongs to a grouped convolution"}


def test_one_filter_of_an_all_zero_layer_stays() -> None:
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 3, 3), nn.ReLU())
    zero(model[0], 0, 1, 2, 3)
    smaller, layers, _ = removed(model, torch.randn(2, 2, 9))
    last = "is the last one: a layer keeps at least one filter"
    assert layers["0"] == LayerRemoval("0", 4, (1, 2, 3), {0: last})
    assert smaller[0].weight.shape == (1, 2, 3)


# ------------------------------------------------------------- a forward as people write it


def test_functions_and_methods_are_followed_like_layers() -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        x = F.avg_pool2d(F.silu(self.second(x)).contiguous(), 2) * 0.5 + 1
        x = F.dropout(x, 0.5, training=self.training)
        x = x.view(x.size(0), -1)
        x = torch.sigmoid(self.third(x)).clamp(min=0.2)
        out: Tensor = self.fourth(x)
        return out

    model = own(
        forward, first=nn.Conv2d(2, 6, 3), norm=nn.BatchNorm2d(6), second=nn.Conv2d(6, 5, 3),
        third=nn.Linear(20, 8), fourth=nn.Linear(8, 2),
    )  # fmt: skip
    lived_in(model)
    zero(model.first, 2)
    zero(model.second, 0, 4)
    zero(model.third, 7)
    _, layers, _ = removed(model, torch.randn(2, 2, 14, 14))
    gone = {name: layer.removed for name, layer in layers.items()}
    assert gone == {"first": (2,), "second": (0, 4), "third": (7,)}


@pytest.mark.parametrize(
    "squash",
    [
        lambda x: x.mean((2, 3)),
        lambda x: torch.mean(x, dim=[-1, -2], keepdim=True).flatten(1),
        lambda x: F.adaptive_avg_pool2d(x, 1).reshape(x.shape[0], -1),
        lambda x: torch.flatten(F.adaptive_max_pool2d(x, (1, 1)), start_dim=1),
        lambda x: x.mean(-1).mean(-1),
    ],
)
def test_ways_to_average_over_positions(squash: Callable[[Tensor], Tensor]) -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        out: Tensor = self.head(squash(torch.sigmoid(self.body(x))))
        return out

    model = own(forward, body=nn.Conv2d(2, 5, 3), head=nn.Linear(5, 3))
    zero(model.body, 1, 2)
    _, layers, _ = removed(model, torch.randn(3, 2, 6, 6))
    assert layers["body"].removed == (1, 2)


def test_asking_for_other_sizes_is_no_reason_to_stay() -> None:
    def forward(self: Any, x: Tensor) -> Any:
        h = torch.sigmoid(self.body(x))
        samples, _, _ = h.size(0), h.size(1), h.dim()
        high, wide = h.shape[-2:]
        first, width, up, down = h.shape  # width is not used
        out: Tensor = self.head(h.reshape((first, -1))) / (high * wide * up) + samples
        return out

    model = own(forward, body=nn.Conv2d(2, 5, 3), head=nn.Linear(80, 3))
    zero(model.body, 1, 2)
    _, layers, _ = removed(model, torch.randn(3, 2, 6, 6))
    assert layers["body"].removed == (1, 2)


def test_neurons_applied_along_a_sequence_and_flattened_with_it() -> None:
    model = nn.Sequential(
        nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 6), nn.Sigmoid(), nn.Flatten(), nn.Linear(42, 2)
    )
    zero(model[0], 3)
    zero(model[2], 0, 2)
    _, layers, _ = removed(model, torch.randn(2, 7, 4))
    assert (layers["0"].removed, layers["2"].removed) == ((3,), (0, 2))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)  # called twice, and has nothing to share
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu(out)  # type: ignore[no-any-return]


def test_a_residual_network_is_smaller_inside_its_blocks() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), Block(6), Block(6),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4),
    )  # fmt: skip
    lived_in(model)
    for name in ("0", "3.conv1", "3.conv2", "4.conv1", "4.conv2"):
        zero(model.get_submodule(name), 0, 5)
    for block in (model[3], model[4]):
        with torch.no_grad():
            block.bn1.running_mean[0] = block.bn1.running_mean[5] = 0.0
            block.bn1.bias[0], block.bn1.bias[5] = -0.5, 0.5  # behind ReLU: 0, and a constant
    smaller, layers, report = removed(model, torch.randn(2, 3, 9, 9))
    for block in ("3", "4"):
        assert layers[f"{block}.conv1"].removed == (0,)
        padding = f"is a constant other than zero at the zero padding of {block}.conv2"
        assert layers[f"{block}.conv1"].kept == {5: padding}
        addition = dict.fromkeys((0, 5), "feeds an addition")
        assert layers[f"{block}.conv2"] == LayerRemoval(f"{block}.conv2", 6, (), addition)
    assert layers["0"].removed == ()
    assert smaller[3].conv2.weight.shape == (6, 5, 3, 3)
    assert "4.conv2: 0 of 6 filters removed; 2 kept (feeds an addition)" in str(report)


def test_nothing_to_remove_gives_an_equal_copy() -> None:
    model = lived_in(stack())
    smaller, layers, report = removed(model, torch.randn(2, 2, 12, 12))
    assert layers == {} and report.parameters_before == report.parameters_after
    torch.testing.assert_close(dict(smaller.state_dict()), dict(model.state_dict()))
    assert smaller[0].weight.data_ptr() != model[0].weight.data_ptr()


def test_arguments_that_the_example_leaves_out_keep_their_defaults() -> None:
    def forward(self: Any, x: Tensor, other: Tensor | None = None, *, double: bool = False) -> Any:
        h = F.relu(self.a(x))
        if other is not None:
            h = h + other
        return self.b(2 * h if double else h)

    model = own(forward, a=nn.Linear(4, 5), b=nn.Linear(5, 2))
    zero(model.a, 3)
    _, layers, _ = removed(model, torch.randn(2, 4))
    assert layers["a"].removed == (3,)
    _, layers, _ = removed(model, torch.randn(2, 4), torch.randn(2, 5))
    assert layers["a"].kept == {3: "feeds an addition"}


def test_the_example_and_the_random_numbers_are_left_alone() -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4), nn.Linear(4, 2))
    example, state = torch.randn(2, 4), torch.get_rng_state()
    before = example.clone()
    remove_zero_filters(model, example)
    assert torch.equal(example, before) and torch.equal(torch.get_rng_state(), state)


# ------------------------------------------------------------------------------- any such network


@given(data=st.data())
def test_any_stack_computes_the_same_with_fewer_parameters(data: st.DataObject) -> None:
    torch.manual_seed(data.draw(st.integers(0, 10**6)))
    layers: list[nn.Module] = []
    channels = 2
    for _ in range(data.draw(st.integers(1, 3))):
        width = data.draw(st.integers(1, 5))
        conv = nn.Conv2d(
            channels, width, data.draw(st.integers(1, 3)), padding=data.draw(st.integers(0, 1)),
            stride=data.draw(st.integers(1, 2)), bias=data.draw(st.booleans()),
        )  # fmt: skip
        zero(conv, *data.draw(st.sets(st.integers(0, width - 1))))
        layers.append(conv)
        if data.draw(st.booleans()):
            layers.append(nn.BatchNorm2d(width))
        activation = data.draw(st.sampled_from([nn.ReLU, nn.GELU, nn.Sigmoid, nn.Identity]))
        layers.append(activation())
        channels = width
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, 3)]
    model = lived_in(nn.Sequential(*layers))
    _, found, _ = removed(model, torch.randn(2, 2, 20, 20))
    weights = [values for name, values in model.named_parameters() if values.dim() == 4]
    zeros = sum(int((~w.flatten(1).any(1)).sum()) for w in weights)
    told = sum(len(layer.removed) + len(layer.kept) for layer in found.values())
    assert told >= zeros  # each zero filter is gone or has its reason
