"""Other weights in a pruned model for a while, and plain copies of it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError, bad_value
from rarefy.pruning.models.branches import ActivationMask, Silence, without_activation_masks
from rarefy.pruning.models.pruned_parameter import only, same

if TYPE_CHECKING:
    from rarefy.pruning.models.pruner import Pruner

WEIGHTS = ("dense", "masked", "projected")


def values_of(pruner: Pruner, which: str) -> dict[Tensor, Tensor]:
    """Parameters of a pruned model, and what they are in one of ``WEIGHTS``."""
    if which not in WEIGHTS:
        raise bad_value("weights", which, f"must be one of {', '.join(WEIGHTS)}")
    pruned = [each for _, each in pruner.all_parameters()]
    if which == "dense":
        return {each.parameter: each.dense().clone() for each in pruned}
    if which == "masked":
        return {each.parameter: only(each.dense(), each.kept) for each in pruned}
    masks = pruner.rule.fresh_masks(pruner.pruned, pruner.step)
    found = {pruner.pruned[name].parameter: mask for name, mask in masks.items()}
    for name, each in pruner.biases.items():
        found[each.parameter] = pruner.rule.filters[name].rows(masks[name])[:, 0]
    return {
        each.parameter: only(each.dense(), found[each.parameter].to(each.kept)) for each in pruned
    }


@contextlib.contextmanager
def with_weights(pruner: Pruner, which: str) -> Iterator[nn.Module]:
    """The model with all its weights ("dense") or with what is left out at zero ("masked")."""
    if pruner.evaluating:
        raise UsageError("pruner: dense() and masked() cannot be nested")
    pruner.adopt_user_writes()
    values = values_of(pruner, which)
    if which == "dense":
        values |= {each.mask: torch.ones_like(each.mask) for each in pruner.neuron_masks}
    elif pruner.branch is not None:
        values |= pruner.branch.values()
    pruner.evaluating = True
    try:
        with _written(values):
            yield pruner.model
            _refuse_writing(pruner, values)
    finally:
        for _, each in pruner.all_parameters():
            each.mark_read()
        pruner.evaluating = False


def _refuse_writing(pruner: Pruner, values: Mapping[Tensor, Tensor]) -> None:
    for name, each in pruner.all_parameters():
        if not same(each.parameter, values[each.parameter].to(each.parameter)):
            raise UsageError(f"pruner: {name} written inside dense() or masked() would be lost")


@contextlib.contextmanager
def _written(values: Mapping[Tensor, Tensor]) -> Iterator[None]:
    """Tensors with other values for a while."""
    before = {tensor: tensor.detach().clone() for tensor in values}
    try:
        _write(values)
        yield
    finally:
        _write(before)


@torch.no_grad()
def _write(values: Mapping[Tensor, Tensor]) -> None:
    for tensor, value in values.items():
        tensor.copy_(value)
    torch.clear_autocast_cache()  # inside autocast its copies of the weights are old now


def _silence_anew(pruner: Pruner, neuron_masks: list[ActivationMask]) -> None:
    """Masks of activations, too, are those that the weights would get now."""
    for name, mask in pruner.rule.fresh_masks(pruner.pruned, pruner.step).items():
        for each in neuron_masks:
            if each.layer == name.rpartition(".")[0]:
                each.mask.copy_(pruner.rule.filters[name].rows(mask).any(dim=1))


def plain_copy(pruner: Pruner, which: str) -> nn.Module:
    """A copy of the model that nobody prunes."""
    with torch.inference_mode(False):  # (a copy made inside one could not be trained)
        return _plain_copy(pruner, which)


def _plain_copy(pruner: Pruner, which: str) -> nn.Module:
    values = values_of(pruner, which)
    names = {id(parameter): name for name, parameter in pruner.model.named_parameters()}
    plain = copy.deepcopy(pruner.model)
    neuron_masks = without_activation_masks(plain)
    places = dict(plain.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for parameter, value in values.items():
            places[names[id(parameter)]].copy_(value)
    if which == "dense":
        return plain
    if which == "projected":
        _silence_anew(pruner, neuron_masks)
    for neuron_mask in neuron_masks:
        # between a layer and its activation anything may stand, so the zeros stay where they act
        inner = plain.get_submodule(neuron_mask.place)
        silent = nn.Sequential(inner, Silence(neuron_mask.mask, neuron_mask.dimension))
        plain.set_submodule(neuron_mask.place, silent)
    if pruner.branch is not None:
        pruner.branch.into(plain)
    return plain
