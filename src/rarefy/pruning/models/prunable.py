"""Which weights of a model can be pruned: found by type, by name or by a function of the module.

What cannot be pruned is refused by name, never passed over in silence: a layer that a person chose
and that stays dense would be believed to be sparse.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils import parametrize

from rarefy.core.errors import UsageError, bad_value
from rarefy.pruning.filters import TRANSPOSED, Filters

Layers = str | type[nn.Module] | Callable[[str, nn.Module], bool] | Iterable[str | type[nn.Module]]
"""Names (with * and ?, or "re:" and a regular expression), types, or a function of both."""
USUAL: tuple[type[nn.Module], ...] = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    *TRANSPOSED,
    nn.MultiheadAttention,
)
"""What is pruned if nobody chooses. An attention's three input projections are one weight."""


@dataclass(frozen=True)
class Prunable:
    """One weight: its name in the model, further names if it is tied, its owner and its layout;
    ``bias``: the owner's bias, one for each filter, where there is one."""

    name: str
    others: tuple[str, ...]
    module: nn.Module
    parameter: nn.Parameter
    filters: Filters
    bias: nn.Parameter | None


def find_prunable(model: nn.Module, layers: Layers | None = None) -> list[Prunable]:
    """All weights with two dimensions or more of the chosen modules, a tied one once."""
    chosen = _choice(model, layers)
    found: dict[int, Prunable] = {}
    every: dict[int, list[str]] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        for local, parameter in module.named_parameters(recurse=False):
            every.setdefault(id(parameter), []).append(f"{prefix}.{local}" if prefix else local)
    attention = {
        f"{prefix}.out_proj" if prefix else "out_proj"
        for prefix, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention) and chosen(prefix, module)
    }
    for prefix, module in model.named_modules():
        if not chosen(prefix, module) and prefix not in attention:
            continue
        _refuse(prefix, module)
        for local, parameter in module.named_parameters(recurse=False):
            if not _has_filters(local, parameter) or id(parameter) in found:
                continue
            name = f"{prefix}.{local}" if prefix else local
            _refuse_parameter(name, parameter)
            if not parameter.numel():  # Linear(2, 0): there is nothing to leave out
                continue
            others = tuple(other for other in every[id(parameter)] if other != name)
            filters = Filters.of(module, parameter)
            bias = _bias(module, local, filters)
            found[id(parameter)] = Prunable(name, others, module, parameter, filters, bias)
    if not found:
        where = "has no layers that can be pruned" if layers is None else "has none in layers="
        raise UsageError(f"model: {type(model).__name__} {where} (weights of 2 dimensions or more)")
    return list(found.values())


def _has_filters(local: str, parameter: nn.Parameter) -> bool:
    """A weight, or something that will be one when its shape is known. (Attention's ``bias_k`` has
    three dimensions and is none.)"""
    if local.startswith("bias"):
        return False
    return isinstance(parameter, nn.parameter.UninitializedParameter) or parameter.ndim >= 2


def _choice(model: nn.Module, layers: Layers | None) -> Callable[[str, nn.Module], bool]:
    if layers is None:
        return lambda name, module: isinstance(module, USUAL) or _once_usual(module)
    if isinstance(layers, type):
        layers = [layers]
    elif isinstance(layers, str):
        layers = [layers]
    elif callable(layers):
        return layers
    wanted = list(layers)
    types = tuple(each for each in wanted if isinstance(each, type))
    patterns = [each for each in wanted if isinstance(each, str)]
    if len(types) + len(patterns) < len(wanted) or not wanted:
        raise bad_value("layers", layers, "must be names, types, or a function (name, module)")
    usable = {name: each for name, each in model.named_modules() if _has_weight(each)}
    for pattern in patterns:
        if not any(_matches(name, pattern) for name in usable):
            names = _some(list(usable))
            raise bad_value(
                "layers", pattern, f"matches no module with a weight; there are {names}"
            )
    for kind in types:
        if not any(isinstance(module, kind) for module in usable.values()):
            raise bad_value("layers", kind.__name__, "no module of this type has a weight")

    def chosen(name: str, module: nn.Module) -> bool:
        return isinstance(module, types) or any(_matches(name, each) for each in patterns)

    return chosen


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("re:"):
        return re.search(pattern[3:], name) is not None
    return fnmatch.fnmatchcase(name, pattern)


def _some(names: list[str]) -> str:
    shown = [name or "'' (the model itself)" for name in names[:8]]
    return (", ".join(shown) or "none") + (", ..." if len(names) > 8 else "")


def _has_weight(module: nn.Module) -> bool:
    """One to prune, or one to refuse."""
    own = module.named_parameters(recurse=False)
    return _why_not(module) != "" or any(_has_filters(local, each) for local, each in own)


def _once_usual(module: nn.Module) -> bool:
    """A usual layer that something has rewritten: it must be refused, not overlooked."""
    kind = type(module)
    return kind.__name__ in {each.__name__ for each in USUAL} and _quantised(module)


def _quantised(module: nn.Module) -> bool:
    return "quantized" in type(module).__module__ or hasattr(module, "_packed_params")


def _refuse(name: str, module: nn.Module) -> None:
    why = _why_not(module)
    if why:
        kind = type(module).__name__
        raise UsageError(
            f"layers: {name or kind} cannot be pruned: {why}; leave it out with layers="
        )


def _why_not(module: nn.Module) -> str:
    """Why a module's weight is not an ordinary parameter; nothing if it is one."""
    why = ""
    if parametrize.is_parametrized(module):
        which = ", ".join(module.parametrizations.keys())  # type: ignore[union-attr, operator]
        why = f"its {which} is computed by a parametrization (weight_norm and the like)"
    elif _quantised(module):
        why = "it is quantised"
    elif ".qat" in type(module).__module__ or hasattr(module, "weight_fake_quant"):
        why = "it is prepared for quantisation"
    elif {"weight_g", "weight_v"} <= set(module._parameters):
        why = "its weight is computed by weight_norm"
    elif "weight_orig" in module._parameters:
        why = "its weight is computed by spectral_norm or torch.nn.utils.prune"
    return why


def _refuse_parameter(name: str, parameter: nn.Parameter) -> None:
    why = ""
    if isinstance(parameter, nn.parameter.UninitializedParameter):
        why = "it has no shape yet: run the model once first"
    elif not parameter.is_floating_point():
        why = f"it is of type {parameter.dtype}"
    elif type(parameter.data) is not torch.Tensor or hasattr(parameter, "_is_flat_param"):
        why = "it is spread over several processes (FSDP, DTensor), which is not supported"
    if why:
        raise UsageError(f"layers: {name} cannot be pruned: {why}")


def _bias(module: nn.Module, weight: str, filters: Filters) -> nn.Parameter | None:
    names = {"weight": "bias", "in_proj_weight": "in_proj_bias"}
    bias = module._parameters.get(names.get(weight, ""))
    return bias if bias is not None and bias.shape == (filters.count,) else None
