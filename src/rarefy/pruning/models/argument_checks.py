"""Choices that do not go together, refused before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from rarefy.core.errors import UsageError, bad_value
from rarefy.pruning.distributions import Keep
from rarefy.pruning.models.prunable import Prunable
from rarefy.pruning.regrowth import Regrowth
from rarefy.pruning.selection import Granularity

if TYPE_CHECKING:
    from rarefy.pruning.models.pruned_parameter import PrunedParameter

MOMENTS = ("keep", "reset")


def check_share(keep: Keep | None, granularity: str) -> Keep:
    """What is kept; N:M says it itself."""
    kind = Granularity.parse(granularity)
    share = kind.n / kind.m if kind.kind == "n:m" else 0.5
    if kind.kind == "n:m" and keep is not None and keep != share:
        raise bad_value("keep", keep, f"granularity {granularity} keeps {share:g}: leave keep out")
    if keep is None:
        return share
    # a NumPy number would travel into the state, and be refused there
    return float(keep) if isinstance(keep, float) else keep


def check_choices(
    update: str,
    granularity: str,
    moments: str,
    regrow: Regrowth | None,
    activations: Mapping[str, str] | None,
    branches: bool,
    masked_gradients: bool,
) -> None:
    if moments not in MOMENTS:
        raise bad_value("moments", moments, f"must be one of {', '.join(MOMENTS)}")
    if activations is not None:
        if granularity != "neuron":
            raise bad_value("activations", dict(activations), "needs granularity='neuron'")
        if update == "project" or branches:
            raise bad_value("activations", dict(activations), "goes with update dense or masked")
    if branches and update != "dense":
        raise bad_value("update", update, "two branches share dense weights: must be 'dense'")
    if masked_gradients and not branches:
        raise bad_value("masked_gradients", True, "belongs to branches=True")
    if regrow is not None and update != "masked":
        raise bad_value("regrow", regrow.kind, "needs update='masked'")


def check_parameters(
    found: list[Prunable], optimizer: torch.optim.Optimizer, taken: set[int]
) -> None:
    """All must be trained by the optimiser and not be pruned already (``taken``: their ids)."""
    trained = {id(each) for group in optimizer.param_groups for each in group["params"]}
    for each in found:
        if id(each.parameter) not in trained:
            raise UsageError(f"optimizer: does not train {each.name}; leave it out with layers=")
        if id(each.parameter) in taken:
            raise UsageError(f"model: {each.name} has a pruner already; detach() that one first")


Link = tuple[dict[str, Any], str, object]
"""Where a module keeps a part, under which name, and which part."""


def check_still_there(
    model: nn.Module, pruned: Mapping[str, PrunedParameter], links: list[Link]
) -> None:
    """The optimiser's and the pruner's parameters must be those that the model uses. ``links`` is
    what was found the last time: that it still holds is seen in microseconds."""
    if links and all(where.get(name) is part for where, name, part in links):
        return
    found: dict[tuple[int, str], Link] = {}
    for name, each in pruned.items():
        owner = model
        *path, local = name.split(".")
        for part in path:
            inner = owner._modules.get(part)
            found[id(owner), part] = (owner._modules, part, inner)
            owner = inner if inner is not None else _NOTHING
        if owner._parameters.get(local) is not each.parameter:
            raise UsageError(f"model: {name} was replaced; detach() before changing a pruned layer")
        found[id(owner), local] = (owner._parameters, local, each.parameter)
    links[:] = found.values()


_NOTHING = nn.Module()
