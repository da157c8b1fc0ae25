"""A smaller network: filters and neurons whose weights are all zero are really taken out.

The copy computes what the model computes. A zero filter gives the same number everywhere; after
normalisation and activation that number is still the same everywhere, though perhaps not zero. It
moves into the bias of the layers that read it. A convolution with zero padding sees another
number at the rim: there only zeros can go. Everything uncertain stays, and the report says why.
"""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves

from rarefy.core.errors import RunError, bad_value
from rarefy.pruning.finishing.channel_rules import CONVOLUTIONS, Flow, is_depthwise
from rarefy.pruning.finishing.channels import TracedModel, Walk, first_line, trace

_TOLERANCE, _COARSE_TOLERANCE = 1e-5, 1e-2
"""How far the copy's outputs may lie from the model's, relative to the largest output (at least 1).
Coarse for 16 bit numbers and on GPUs, which round the inputs of a convolution to 10 bits."""


@dataclass(frozen=True)
class LayerRemoval:
    """What became of the zero filters of one layer; filters count from 0 as in the model given."""

    layer: str
    filters: int
    """How many the layer had."""
    removed: tuple[int, ...]
    kept: dict[int, str]
    """Filters that are zero and stay, with the reason."""

    def __str__(self) -> str:
        line = f"{self.layer}: {len(self.removed)} of {self.filters} filters removed"
        reasons = [
            f"{list(self.kept.values()).count(reason)} kept ({reason})"
            for reason in dict.fromkeys(self.kept.values())
        ]
        return "; ".join([line, *reasons])


@dataclass(frozen=True)
class Removal:
    """What was taken out of a model: layers with zero filters only, in the model's order."""

    layers: tuple[LayerRemoval, ...]
    parameters_before: int
    parameters_after: int

    def __str__(self) -> str:
        first = f"{self.parameters_before} parameters before, {self.parameters_after} after"
        return "\n".join([first, *map(str, self.layers)])


def remove_zero_filters(
    model: nn.Module, example: Tensor | tuple[Any, ...], constant: bool = False
) -> tuple[nn.Module, Removal]:
    """A copy of the model at evaluation without the filters whose weights and bias are all zero.

    The outputs on the example are compared in the end. The model given is left as it is.

    Arguments:
        model: any that can be copied and traced.
        example: an input of the model, or the tuple of all its inputs.
        constant: filters with zero weights and any bias go too: they give a constant all the same.

    Returns:
        The smaller copy, and what was removed: parameters before and after, filters per layer.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(),
        ...                             torch.nn.Linear(4, 2))
        >>> with torch.no_grad():
        ...     _ = model[0].weight[1].zero_(), model[0].bias[1].zero_()
        >>> smaller, removal = rarefy.pruning.remove_zero_filters(model, torch.randn(1, 8))
        >>> removal.parameters_before, removal.parameters_after
        (46, 35)
    """
    if any(is_lazy(parameter) for parameter in model.parameters()):
        raise bad_value("model", type(model).__name__, "must have run once: it has lazy layers")
    given = example if isinstance(example, tuple) else (example,)
    try:
        smaller = copy.deepcopy(model).eval()
    except Exception as error:
        allowed = f"must be a model that can be copied ({first_line(error)})"
        raise bad_value("model", type(model).__name__, allowed) from error
    for parameter in smaller.parameters():
        parameter.grad = None
    before = _size(smaller)
    with torch.no_grad():
        try:
            wanted = _outputs(smaller, given)
        except Exception as error:
            forms = [tuple(x.shape) if isinstance(x, Tensor) else x for x in given]
            allowed = f"must be what the model takes ({first_line(error)})"
            raise bad_value("example", forms, allowed) from error
        filters = {name: list(range(len(layer.weight))) for name, layer in _layers(smaller)}
        removed: dict[str, list[int]] = {name: [] for name in filters}
        # a filter that read nothing but removed filters is zero now: until there are no more
        while True:
            with _same_numbers(smaller, given):
                traced = trace(smaller, _fresh(given))
            plans = {name: _plan(traced, name, constant) for name in filters}
            if not any(plan.removed for plan in plans.values()):
                break
            for name, plan in plans.items():
                for narrowed in _carry_out(traced, name, plan):
                    stays = narrowed.stays.tolist()
                    pairs = list(zip(filters[narrowed.layer], stays, strict=True))
                    filters[narrowed.layer] = [place for place, stay in pairs if stay]
                    removed[narrowed.layer] += [place for place, stay in pairs if not stay]
        _compare(wanted, _outputs(smaller, given))
    report = tuple(
        LayerRemoval(
            name,
            len(filters[name]) + len(removed[name]),
            tuple(sorted(removed[name])),
            {filters[name][place]: reason for place, reason in sorted(plan.kept.items())},
        )
        for name, plan in plans.items()
        if removed[name] or plan.kept
    )
    return smaller, Removal(report, before, _size(smaller))


@dataclass(frozen=True)
class _Plan:
    """Which zero filters of a layer go, and who else is concerned."""

    removed: list[int]
    kept: dict[int, str]
    walk: Walk


def _plan(traced: TracedModel, name: str, constant: bool) -> _Plan:
    layer: Any = traced.layers[name]
    weight, bias = layer.weight, layer.bias
    zero = ~(weight != 0).flatten(1).any(1)
    biased = torch.zeros_like(zero) if bias is None else zero & (bias != 0)
    dead: list[int] = zero.nonzero().flatten().tolist()
    kept: dict[int, str] = {}
    walk = Walk(traced)
    fixed = _why_kept(traced, name) if dead else None
    if fixed:
        kept = dict.fromkeys(dead, fixed)
    elif dead:
        call = traced.calls[name][0]
        shape = traced.shapes[call]
        constants = weight.new_zeros(len(weight)) if bias is None else torch.where(zero, bias, 0)
        origin = torch.arange(len(weight), device=weight.device)
        dim = 1 if type(layer) in CONVOLUTIONS else len(shape) - 1
        walk.follow(call, Flow(constants, origin, dim, shape))
        if not constant:
            reason = "has a bias, so that it gives a constant"
            kept = dict.fromkeys(biased.nonzero().flatten().tolist(), reason)
        kept |= {channel: walk.kept[channel] for channel in dead if channel in walk.kept}
    removed = [channel for channel in dead if channel not in kept]
    if len(removed) == len(weight):
        kept[removed.pop(0)] = "is the last one: a layer keeps at least one filter"
    return _Plan(removed, kept, walk)


def _why_kept(traced: TracedModel, name: str) -> str | None:
    layer: Any = traced.layers[name]
    if not traced.calls[name]:
        return "belongs to a layer that is not called by itself"
    if type(layer) not in CONVOLUTIONS and type(layer) is not nn.Linear:
        return f"belongs to a {type(layer).__name__}, not to a plain layer"
    fixed = traced.why_fixed(name)
    if fixed:
        return f"belongs to a layer that {fixed}"
    axes = CONVOLUTIONS.get(type(layer))
    if axes is not None and layer.groups > 1:
        return "belongs to a grouped convolution"
    if axes is not None and len(traced.shapes[traced.calls[name][0]]) != axes + 2:
        return "belongs to a convolution of one sample without a batch"
    return None


@dataclass(frozen=True)
class _Narrowed:
    layer: str
    stays: Tensor


def _carry_out(traced: TracedModel, name: str, plan: _Plan) -> list[_Narrowed]:
    """Slice a layer, those its channels pass and those that read them: what became narrower."""
    if not plan.removed:
        return []
    layer: Any = traced.layers[name]
    stays = torch.ones(len(layer.weight), dtype=torch.bool, device=layer.weight.device)
    stays[plan.removed] = False
    narrowed = [_Narrowed(name, stays)]
    for passed, origin in plan.walk.passes:
        if is_depthwise(traced.layers[passed]):
            narrowed.append(_Narrowed(passed, stays[origin]))
        _slice(traced.layers[passed], stays[origin])
    _slice(layer, stays)
    for reader, flow in plan.walk.readers:
        _read_less(traced.layers[reader], stays[flow.origin], flow.constants)
    return narrowed


def _slice(layer: Any, stays: Tensor) -> None:
    """Leave only some filters of a layer that has one row of parameters a filter."""
    width = int(stays.sum())
    if is_depthwise(layer):
        layer.groups = layer.in_channels = width
    for table in (layer._parameters, layer._buffers):
        for name, values in table.items():
            if values is not None and values.dim() > 0:  # not the count of batches
                table[name] = _like(values, values[stays])
    for name in ("out_features", "out_channels", "num_features", "num_parameters"):
        if hasattr(layer, name):
            setattr(layer, name, width)


def _read_less(layer: Any, stays: Tensor, constants: Tensor) -> None:
    """Take inputs away; what they were adding, always the same, goes to the bias."""
    weight, bias = layer.weight, layer.bias
    gone = constants[~stays].double()
    if bool((gone != 0).any()):
        lost = weight[:, ~stays].double().reshape(len(weight), len(gone), -1).sum(2) @ gone
        lost = lost if bias is None else lost + bias.double()
        layer.bias = _like(weight if bias is None else bias, lost.to(weight.dtype))
    layer.weight = _like(weight, weight[:, stays])
    setattr(layer, "in_features" if type(layer) is nn.Linear else "in_channels", int(stays.sum()))


def _like(old: Tensor, values: Tensor) -> Tensor:
    if isinstance(old, nn.Parameter):
        return nn.Parameter(values.clone(), requires_grad=old.requires_grad)
    return values.clone()


def _layers(model: nn.Module) -> list[tuple[str, Any]]:
    kinds = (nn.Linear, *CONVOLUTIONS)
    return [(name, layer) for name, layer in model.named_modules() if isinstance(layer, kinds)]


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _fresh(example: tuple[Any, ...]) -> tuple[Any, ...]:
    """The example again: a model may write into what it is given."""
    return tuple(x.clone() if isinstance(x, Tensor) else copy.deepcopy(x) for x in example)


def _same_numbers(model: nn.Module, example: tuple[Any, ...]) -> AbstractContextManager[None]:
    """Inside, a model that draws gets the random numbers that are next; they stay next."""
    tensors = [x for x in (*example, *model.parameters()) if isinstance(x, Tensor)]
    return torch.random.fork_rng({x.device.index for x in tensors if x.device.type == "cuda"})


def _outputs(model: nn.Module, example: tuple[Any, ...]) -> list[Tensor]:
    with _same_numbers(model, example):
        found = tree_leaves(model(*_fresh(example)))
    return [values.clone() for values in found if isinstance(values, Tensor)]


def _compare(wanted: list[Tensor], found: list[Tensor]) -> None:
    """The last word: what the trace may have missed must not leave this room."""
    for first, second in zip(wanted, found, strict=True):
        exact = first.dtype in (torch.float32, torch.float64) and first.device.type == "cpu"
        tolerance = _TOLERANCE if exact else _COARSE_TOLERANCE
        finite = first[first.isfinite()].abs()
        scale = max(1.0, float(finite.max())) if finite.numel() else 1.0
        if first.shape != second.shape or not torch.allclose(
            first.double(), second.double(), rtol=0.0, atol=tolerance * scale, equal_nan=True
        ):
            raise RunError(
                "the model without its zero filters gives other outputs on the example: its"
                " forward does something that torch.fx does not see"
            )
