"""Models with zero filters, and what holds for every copy without them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rarefy.pruning.finishing.removal import LayerRemoval, Removal, remove_zero_filters

CLOSE = 1e-5
"""What the library promises for float32."""


def own(written: Callable[..., Any], **layers: nn.Module) -> nn.Module:
    """A class of its own for each forward, as a user writes it."""
    kind = type("Written", (nn.Module,), {"forward": written})
    model: nn.Module = kind()
    for name, layer in layers.items():
        model.add_module(name, layer)
    return model


def zero(layer: Any, *filters: int) -> None:
    with torch.no_grad():
        layer.weight[list(filters)] = 0.0
        if layer.bias is not None:
            layer.bias[list(filters)] = 0.0


def lived_in(model: nn.Module) -> nn.Module:
    """BatchNorm with statistics and parameters as after training; constants are then not zero."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
            with torch.no_grad():
                for values in (layer.running_mean, layer.weight, layer.bias):
                    assert values is not None
                    values.copy_(torch.randn_like(values))
                assert layer.running_var is not None
                layer.running_var.uniform_(0.5, 2.0)
    return model


def removed(
    model: nn.Module, *example: Tensor, constant: bool = False
) -> tuple[Any, dict[str, LayerRemoval], Removal]:
    """The smaller copy, after everything that holds for any copy was checked on new inputs."""
    before = {name: values.clone() for name, values in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    smaller, report = remove_zero_filters(model, tuple(example), constant)
    torch.testing.assert_close(dict(model.state_dict()), before, rtol=0, atol=0)
    assert [module.training for module in model.modules()] == modes
    assert not any(module.training for module in smaller.modules())
    reference = copy.deepcopy(model).eval()
    for batch in (1, 5):
        inputs = [torch.randn(batch, *x.shape[1:]) for x in example]
        with torch.no_grad():
            torch.testing.assert_close(smaller(*inputs), reference(*inputs), rtol=CLOSE, atol=CLOSE)
    assert type(smaller) is type(model)
    assert [type(m) for m in smaller.modules()] == [type(m) for m in model.modules()]
    assert report.parameters_before == sum(p.numel() for p in model.parameters())
    assert report.parameters_after == sum(p.numel() for p in smaller.parameters())
    layers = {layer.layer: layer for layer in report.layers}
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d):
            gone = layers[name].removed if name in layers else ()
            assert len(smaller.get_submodule(name).weight) == len(layer.weight) - len(gone) > 0
    return smaller, layers, report
