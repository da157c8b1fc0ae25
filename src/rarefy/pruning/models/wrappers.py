"""What stands around a model or an optimiser, and what is inside."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

if TYPE_CHECKING:
    from rarefy.pruning.models.optimizer_hooks import OptimizerHooks

_to_be_told: weakref.WeakSet[OptimizerHooks] = weakref.WeakSet()


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself: a compiled or distributed one has the same parameters by other names."""
    while True:
        if isinstance(model, nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod  # type: ignore[assignment]
        else:
            return model


def watch_for_wrapping(pruner: OptimizerHooks) -> None:
    """From now on ``pruner.wrapped`` is the DistributedDataParallel that its model is put into."""
    _to_be_told.add(pruner)


def _put_into(outer: nn.Module, name: str, inner: nn.Module) -> None:
    """Torch calls it for every module that becomes part of another."""
    if isinstance(outer, nn.parallel.DistributedDataParallel):
        inside = {id(each) for each in inner.modules()}
        for pruner in _to_be_told:
            if id(pruner.model) in inside:
                pruner.wrapped = weakref.ref(outer)


register_module_module_registration_hook(_put_into)


def innermost(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Wrappers pass ``step()`` on but not its hooks: those belong to the wrapped optimiser."""
    inner = getattr(optimizer, "optimizer", None)
    while isinstance(inner, torch.optim.Optimizer):
        optimizer, inner = inner, getattr(inner, "optimizer", None)
    return optimizer
