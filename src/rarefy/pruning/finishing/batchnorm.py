"""Running statistics of BatchNorm estimated anew, for weights that are not those they come from.

After a mask has changed, the running means and variances belong to another network: those of a
zero filter shrink step by step, and a filter that comes back is scaled wrongly at evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rarefy.core.errors import bad_value


@dataclass(frozen=True)
class Reestimation:
    """Layers that have new statistics (none in a model without BatchNorm) and batches read."""

    layers: tuple[str, ...]
    batches: int


def reestimate(model: nn.Module, batches: Iterable[Any], limit: int | None = None) -> Reestimation:
    """Reset the running statistics of every BatchNorm and average them over the batches.

    With n_b values per channel in batch b (samples times positions) the new statistics are

        mean = sum_b n_b mean_b / sum_b n_b      var = sum_b n_b var_b / sum_b n_b

    where var_b is unbiased, as in BatchNorm itself: every value counts alike, also those of a
    smaller last batch. For equal batches this is BatchNorm with ``momentum=None``.

    During the estimate BatchNorm alone is in training mode, dropout is off; modes and momenta come
    back afterwards, and after an error the old statistics too. A layer that the batches never reach
    keeps its statistics. Without BatchNorm no batch is read.

    Arguments:
        model: changed in place.
        batches: each the model's input, or a tuple whose first entry is.
        limit: the largest number of batches; None: all.

    Returns:
        The ``layers`` that have new statistics, and how many ``batches`` were read.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4))
        >>> rarefy.pruning.reestimate(model, [torch.randn(16, 8), torch.randn(16, 8)])
        Reestimation(layers=('1',), batches=2)
    """
    if limit is not None and limit < 1:
        raise bad_value("limit", limit, "must be at least 1, or None for all batches")
    found = {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, _BatchNorm)
        and layer.track_running_stats
        and layer.running_mean is not None
    }
    if not found:
        return Reestimation((), 0)
    seen: dict[str, int] = dict.fromkeys(found, 0)
    place, count = _device(model), 0
    with _estimating(model, found, seen), torch.no_grad(), _uncompiled(model):
        for batch in islice(batches, limit):
            model(_input(batch, count).to(place))
            count += 1
        if count == 0:
            raise bad_value("batches", [], "must hold at least one batch")
    return Reestimation(tuple(name for name in found if seen[name]), count)


@contextmanager
def _estimating(
    model: nn.Module, found: dict[str, _BatchNorm], seen: dict[str, int]
) -> Iterator[None]:
    """BatchNorm layers that average, everything else at evaluation; afterwards all as before."""
    modes = {module: module.training for module in model.modules()}
    momenta = {name: layer.momentum for name, layer in found.items()}
    old = {
        name: {key: values.clone() for key, values in layer._buffers.items() if values is not None}
        for name, layer in found.items()
    }
    hooks = []
    done = False
    try:
        for module in modes:
            module.training = False
        for name, layer in found.items():
            layer.training = True
            layer.reset_running_stats()
            hooks.append(layer.register_forward_pre_hook(_weighing(name, seen)))
        yield
        done = True
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in modes.items():
            module.training = mode
        for name, layer in found.items():
            layer.momentum = momenta[name]
            if not done or not seen[name]:
                for key, values in old[name].items():
                    layer.get_buffer(key).copy_(values)


def _weighing(name: str, seen: dict[str, int]) -> Any:
    """Before each call the momentum becomes this batch's share of all values so far."""

    def hook(layer: _BatchNorm, given: tuple[Tensor, ...]) -> None:
        values = given[0]
        number = values.numel() // max(values.shape[1], 1)
        if number < 2:
            allowed = f"must give at least 2 values per channel at {name} (drop a last batch of 1)"
            raise bad_value("batches", f"input of {tuple(values.shape)}", allowed)
        seen[name] += number
        layer.momentum = number / seen[name]

    return hook


def _input(batch: Any, number: int) -> Tensor:
    values = batch[0] if isinstance(batch, (tuple, list)) and len(batch) else batch
    if not isinstance(values, Tensor):
        allowed = "must be a tensor, or a tuple whose first entry is one"
        raise bad_value(f"batches[{number}]", type(values).__name__, allowed)
    return values


def _device(model: nn.Module) -> torch.device:
    """A model has a BatchNorm here, so it has buffers."""
    return next(iter([*model.parameters(), *model.buffers()])).device


@contextmanager
def _uncompiled(model: nn.Module) -> Iterator[None]:
    """A compiled model does not see new hooks: it runs as written."""
    if any(m._compiled_call_impl is not None or hasattr(m, "_orig_mod") for m in model.modules()):
        with torch.compiler.set_stance("force_eager"):
            yield
    else:
        yield
