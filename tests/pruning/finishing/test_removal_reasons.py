"""Zero filters that stay in a network, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from zero_filters import lived_in, own, removed, zero

from rarefy.core.errors import RunError, UsageError
from rarefy.pruning.finishing.removal import remove_zero_filters


@pytest.fixture(autouse=True)
def same_weights() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield


def one(written: Callable[..., Any], *, width: int = 4, **more: nn.Module) -> dict[int, str]:
    """A forward with ``a`` of zero neurons 1 and 2 (Linear 4 to 4): reasons why they stay."""
    model = own(written, a=nn.Linear(4, 4), b=nn.Linear(width, 3), **more)
    zero(model.a, 1, 2)
    _, layers, _ = removed(model, torch.randn(4, 4))
    assert layers["a"].removed == ()
    assert list(layers["a"].kept) == [1, 2]
    return layers["a"].kept


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (lambda self, x: self.a(x), "feeds the model's output"),
        (lambda self, x: (self.b(self.a(x)), self.a.weight.sum()),
         "belongs to a layer that has a parameter that is used elsewhere too"),
        (lambda self, x: self.b(self.a(x) + x), "feeds an addition"),
        (lambda self, x: self.b(self.a(x) * torch.tanh(x)), "feeds a product"),
        (lambda self, x: self.b(self.a(self.a(x))),
         "belongs to a layer that is called more than once"),
        (lambda self, x: self.b(self.b(self.a(x)) @ self.b.weight.detach()) + self.b(x),
         "feeds b, which is called more than once"),
        (lambda self, x: self.b(torch.softmax(self.a(x), 1)),
         "feeds softmax, through which channels are not followed"),
        (lambda self, x: self.b(self.a(x).view(-1, 4)),
         "feeds view, through which channels are not followed"),
        (lambda self, x: (lambda h: self.b(h) / h.shape[1])(self.a(x)),
         "feeds code that asks for its shape"),
        (lambda self, x: (lambda h: self.b(h) / h.size(-1))(self.a(x)),
         "feeds code that asks for its shape"),
        (lambda self, x: (lambda h: self.b(h) / h.size()[-1:][0])(self.a(x)),
         "feeds code that asks for its shape"),
        (lambda self, x: (lambda h: self.b(h) + F.relu(h, inplace=True).sum())(self.a(x)),
         "is changed in place and read elsewhere too"),
        (lambda self, x: self.b(1 / self.a(x)), "is not a finite number at b"),
        (lambda self, x: self.b(self.a(x)) + F.linear(x, self.b.weight),
         "feeds b, which has a parameter that is used elsewhere too"),
    ],
)  # fmt: skip
def test_the_reason_why_a_neuron_stays(written: Callable[..., Any], reason: str) -> None:
    if "finite" in reason:  # the outputs are not numbers either
        model = own(written, a=nn.Linear(4, 4), b=nn.Linear(4, 3))
        zero(model.a, 1, 2)
        _, report = remove_zero_filters(model, torch.randn(4, 4))
        assert report.layers[0].kept == {1: reason, 2: reason}
    else:
        assert set(one(written).values()) == {reason}


def test_a_concatenation_keeps_its_parts() -> None:
    kept = one(lambda self, x: self.b(torch.cat([self.a(x), x], 1)), width=8)
    assert set(kept.values()) == {"feeds a concatenation"}


def test_layers_that_mix_channels_keep_them() -> None:
    kept = one(lambda self, x: self.b(self.norm(self.a(x))), norm=nn.LayerNorm(4))
    assert set(kept.values()) == {"feeds norm (LayerNorm), through which channels are not followed"}


def test_attention_keeps_what_it_reads_and_what_it_holds() -> None:
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    model = own(
        lambda self, x: (lambda h: self.b(self.attention(h, h, h)[0]))(self.a(x)),
        a=nn.Linear(4, 4), b=nn.Linear(4, 3), attention=attention,
    )  # fmt: skip
    zero(model.a, 1)
    zero(attention.out_proj, 2)
    _, layers, _ = removed(model, torch.randn(2, 5, 4))
    reason = "feeds attention (MultiheadAttention), through which channels are not followed"
    assert layers["a"].kept == {1: reason}
    inside = "belongs to a layer that is not called by itself"
    assert layers["attention.out_proj"].kept == {2: inside}


def test_a_branch_that_keeps_a_channel_keeps_it_everywhere() -> None:
    def forward(self: Any, x: Tensor) -> Any:
        h = torch.sigmoid(self.a(x))
        return self.valid(h), self.padded(h)

    model = own(
        forward, a=nn.Conv2d(2, 4, 3), valid=nn.Conv2d(4, 2, 3),
        padded=nn.Conv2d(4, 2, 3, padding=1),
    )  # fmt: skip
    zero(model.a, 1)
    _, layers, _ = removed(model, torch.randn(2, 2, 8, 8))
    assert layers["a"].kept == {1: "is a constant other than zero at the zero padding of padded"}
    model.padded.padding = (0, 0)
    _, layers, _ = removed(model, torch.randn(2, 2, 8, 8))
    assert layers["a"].removed == (1,)


def test_an_average_that_counts_padding_keeps_constants_only() -> None:
    for bias, gone in ((-1.0, (1,)), (1.0, ())):
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2, padding=1),
            nn.Conv2d(4, 2, 1),
        )  # fmt: skip
        zero(model[0], 1)
        with torch.no_grad():
            model[1].bias[1] = bias
        _, layers, _ = removed(model, torch.randn(2, 2, 8, 8))
        assert layers["0"].removed == gone
    assert layers["0"].kept == {
        1: "is a constant other than zero at an average that pads or rescales"
    }


def test_tied_layers_and_modules_with_two_names_are_kept() -> None:
    tied = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 2))
    tied[2].weight = tied[0].weight
    same = nn.Linear(4, 4)
    twice = nn.Sequential(same, nn.ReLU(), same, nn.Linear(4, 2))
    for model in (tied, twice):
        zero(model[0], 1)
        smaller, layers, report = removed(model, torch.randn(2, 4))
        assert layers["0"].removed == () and report.parameters_before == report.parameters_after
        assert smaller[0].weight.data_ptr() == smaller[2].weight.data_ptr()


def test_hooks_subclasses_and_parametrized_weights_are_kept() -> None:
    class Mine(nn.Linear):
        pass

    hooked = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    hooked[0].register_forward_hook(lambda layer, given, out: out + 1)
    below = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    below[1].register_forward_hook(lambda layer, given, out: out + 1)
    mine = nn.Sequential(Mine(4, 4), nn.Linear(4, 2))
    with_norm = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    for model, reason in (
        (hooked, "belongs to a layer that has hooks"),
        (below, "feeds 1 (ReLU), through which channels are not followed"),
        (mine, "belongs to a Mine, not to a plain layer"),
    ):
        zero(model[0], 1)
        _, layers, _ = removed(model, torch.randn(2, 4))
        assert layers["0"].kept == {1: reason}
    zero(with_norm[0], 1)
    nn.utils.parametrizations.orthogonal(with_norm[1])
    _, layers, _ = removed(with_norm, torch.randn(2, 4))
    assert layers["0"].kept == {
        1: "feeds 1 (ParametrizedLinear), through which channels are not followed"
    }


@pytest.mark.parametrize(
    ("written", "width", "layer", "example", "target"),
    [
        (lambda self, x: self.b(self.c(self.a(x))), 3, nn.MaxPool1d(2), (2, 4), "c (MaxPool1d)"),
        (lambda self, x: self.b(self.c(self.a(x))), 6, nn.BatchNorm1d(5), (5, 4), "c (BatchN"),
        (lambda self, x: self.b(self.c(self.a(x))), 6, nn.Conv1d(5, 2, 1), (5, 4), "c (Conv1d)"),
        (lambda self, x: self.b(self.a(x).mean(-1, keepdim=True)), 1, None, (5, 4), "mean"),
        (lambda self, x: self.b(self.a(x).mean()[None, None]), 1, None, (5, 4), "mean"),
        (lambda self, x: self.b(self.a(x).flatten().view(-1, 6)), 6, None, (5, 4), "flatten"),
        (lambda self, x: self.b(self.a(x).mT), 5, None, (5, 4), "code that asks for its shape"),
    ],
)  # fmt: skip
def test_neurons_are_told_from_positions(
    written: Callable[..., Any], width: int, layer: nn.Module | None, example: Any, target: str
) -> None:
    """Neurons lie along the last axis: what works along another one is not channel-wise."""
    model = own(written, a=nn.Linear(4, 6), b=nn.Linear(width, 3), c=layer or nn.Identity())
    zero(model.a, 1)
    _, layers, _ = removed(lived_in(model), torch.randn(2, *example))
    assert layers["a"].kept[1].startswith(f"feeds {target}")


def test_grouped_convolutions_and_normalisation_by_the_batch_keep_channels() -> None:
    for layer in (nn.Conv2d(4, 4, 3, groups=2), nn.BatchNorm2d(4, track_running_stats=False)):
        model = nn.Sequential(nn.Conv2d(2, 4, 3), layer, nn.Conv2d(4, 2, 1))
        zero(model[0], 1)
        _, layers, _ = removed(model, torch.randn(2, 2, 8, 8))
        reason = f"feeds 1 ({type(layer).__name__}), through which channels are not followed"
        assert layers["0"].kept == {1: reason}


def test_one_sample_without_a_batch_is_no_example_for_a_convolution() -> None:
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.Conv1d(4, 2, 1))
    zero(model[0], 1)
    _, report = remove_zero_filters(model, torch.randn(2, 8))
    assert report.layers[0].kept == {1: "belongs to a convolution of one sample without a batch"}


def test_dropout_that_is_never_off_keeps_channels() -> None:
    class Always(nn.Sequential):
        def train(self, mode: bool = True) -> Always:
            super().train(mode)
            self[1].training = True
            return self

    model = Always(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    function = own(
        lambda self, x: self.b(F.dropout(self.a(x), 0.5)), a=nn.Linear(4, 4), b=nn.Linear(4, 2)
    )
    for wild, first, name in ((model, model[0], "1 (Dropout)"), (function, function.a, "dropout")):
        zero(first, 1)
        _, report = remove_zero_filters(wild, torch.randn(2, 4))
        reason = f"feeds {name}, through which channels are not followed"
        assert report.layers[0].kept == {1: reason}


# ------------------------------------------------------------------------------------------- errors


def test_control_flow_by_value_is_one_line() -> None:
    model = own(lambda self, x: self.a(x) if x.sum() > 0 else x, a=nn.Linear(4, 4))
    with pytest.raises(UsageError) as error:
        remove_zero_filters(model, torch.ones(2, 4))
    assert str(error.value).startswith(
        "model='Written': must be traceable by torch.fx, without control flow by value ("
    )
    assert "\n" not in str(error.value)


def test_an_example_that_does_not_fit_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"^example=\[\(2, 5\)\]: must be what the model takes \("):
        remove_zero_filters(nn.Linear(4, 4), torch.ones(2, 5))


def test_lazy_and_uncopyable_models_are_refused() -> None:
    with pytest.raises(
        UsageError, match="^model='LazyLinear': must have run once: it has lazy lay"
    ):
        remove_zero_filters(nn.LazyLinear(4), torch.ones(2, 5))
    model = nn.Linear(4, 4)
    model.memory = model.weight * 2  # not a leaf: no deep copy
    with pytest.raises(UsageError, match="^model='Linear': must be a model that can be copied"):
        remove_zero_filters(model, torch.ones(2, 4))


def test_a_forward_that_deceives_the_trace_is_found_out() -> None:
    def forward(self: Any, x: Tensor) -> Any:
        h = self.a(x)
        return self.b(h + 1 if isinstance(h, Tensor) else h)  # a proxy is no tensor

    model = own(forward, a=nn.Linear(4, 5), b=nn.Linear(5, 2))
    zero(model.a, 3)
    with pytest.raises(RunError, match="gives other outputs on the example"):
        remove_zero_filters(model, torch.randn(2, 4))
