"""What stands around a model or an optimiser, and what is inside."""

from __future__ import annotations

import torch
from torch import nn


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself: a compiled or distributed one has the same parameters by other names."""
    while True:
        if isinstance(model, nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod  # type: ignore[assignment]
        else:
            return model


def innermost(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Wrappers pass ``step()`` on but not its hooks: those belong to the wrapped optimiser."""
    inner = getattr(optimizer, "optimizer", None)
    while isinstance(inner, torch.optim.Optimizer):
        optimizer, inner = inner, getattr(inner, "optimizer", None)
    return optimizer
