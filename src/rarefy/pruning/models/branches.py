"""Masks that act elsewhere than in the model's weights: in a second branch, or on activations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError, bad_value
from rarefy.pruning.filters import TRANSPOSED

if TYPE_CHECKING:
    from rarefy.pruning.models.pruned_parameter import PrunedParameter

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
NORMS = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.LayerNorm)
FAINT = 2.0**-64
"""Of what is left out before a non-linearity: far below the rounding of what is kept, and far above
the smallest number (of float32 and bfloat16; float16 has no such number)."""


class MaskedBranch:
    """The model's weights with masks, as a function of its inputs, while the model stays dense:
    both can be used in one step. Normalisation layers have statistics of their own, which are kept
    here, so that the model's state dict is what it was.

    Gradients of weights that are left out are those at the masked point (the mask is passed over
    in the backward pass), or zero with ``masked_gradients``. ``give_own`` lets the branch have some
    parameters for itself.
    """

    def __init__(
        self, model: nn.Module, pruned: Iterable[PrunedParameter], masked_gradients: bool
    ) -> None:
        self.model, self.masked_gradients = model, masked_gradients
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        self.pruned = {names[id(each.parameter)]: each for each in pruned}
        self.buffers = {
            name: buffer.detach().clone()
            for name, buffer in model.named_buffers()
            if name.rpartition(".")[2] in STATISTICS
        }
        self.own: dict[str, nn.Parameter] = {}
        self.factors: dict[str, Tensor] = {}
        """By what a weight is multiplied in place of its mask, if anybody puts something here."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        weights = {name: self._weight(name, each) for name, each in self.pruned.items()}
        self._match_device()
        inside = {**weights, **self.own, **self.buffers}
        return torch.func.functional_call(self.model, inside, args, kwargs)

    def give_own(self, names: Iterable[str]) -> list[nn.Parameter]:
        """From here on the branch has copies of these parameters of the model (the affine weights
        of normalisation layers, say), which an optimiser must be told of. Gives these copies."""
        theirs = dict(self.model.named_parameters())
        given: dict[str, nn.Parameter] = {}
        for name in names:
            if name in self.pruned or name not in theirs:
                why = "is pruned" if name in self.pruned else "is no parameter of the model"
                raise bad_value("names", name, f"{why}: the branch cannot have its own")
            if name in self.own or name in given:
                # an optimiser may know the first copy, and would go on training that
                raise bad_value("names", name, "the branch has its own already")
            like = theirs[name]
            given[name] = nn.Parameter(like.detach().clone(), requires_grad=like.requires_grad)
        self.own |= given
        return list(given.values())

    def _weight(self, name: str, pruned: PrunedParameter) -> Tensor:
        weight = pruned.parameter
        if pruned.kept.device != weight.device or pruned.kept.dtype != weight.dtype:
            pruned.adopt_user_write()
        masked = weight * self.factors.get(name, pruned.kept).to(weight)
        return masked if self.masked_gradients else weight + (masked - weight).detach()

    def _match_device(self) -> None:
        """The model may have gone to another device or type."""
        own = dict(self.model.named_buffers())
        self.buffers = {name: value.to(own[name]) for name, value in self.buffers.items()}
        theirs = dict(self.model.named_parameters()) if self.own else {}
        for name, value in self.own.items():
            like = theirs[name]
            if value.device != like.device or value.dtype != like.dtype:
                value.data = value.data.to(like)  # (still the one that the optimiser knows)

    def values(self) -> dict[Tensor, Tensor]:
        """The model's statistics and parameters that differ in this branch, and what they are."""
        theirs = {**dict(self.model.named_buffers()), **dict(self.model.named_parameters())}
        return {theirs[name]: value for name, value in self._differing()}

    @torch.no_grad()
    def into(self, model: nn.Module) -> None:
        """Write them into a model."""
        theirs = {**dict(model.named_buffers()), **dict(model.named_parameters())}
        for name, value in self._differing():
            theirs[name].copy_(value)

    def state(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self._differing()}

    @torch.no_grad()
    def load(self, state: Mapping[str, Tensor]) -> None:
        for name, value in self._differing():
            value.copy_(state[name])

    def _differing(self) -> list[tuple[str, Tensor]]:
        return [*self.buffers.items(), *self.own.items()]


class ActivationMask:
    """Zeroes a layer's neurons where they have been through their non-linearity. A forward hook.

    A neuron whose incoming weights are zero is dead under ReLU: no gradient reaches them. Behind
    the non-linearity its gradient is that of a neuron that is there: with ``dense`` updates the
    mask is passed over in the backward pass. (Its outgoing weights get none, because it shows them
    zero.)

    ``before``: it stands before the non-linearity, which may be no module. A zero would be dead
    there, too; ``FAINT`` as much of the output is nothing to what comes next, but ReLU knows where
    the neuron would act, and lets its gradient pass.
    """

    def __init__(
        self,
        layer: str,
        place: str,
        neurons: Tensor,
        dimension: int,
        dense: bool,
        before: bool = False,
    ) -> None:
        self.layer, self.place, self.mask = layer, place, neurons
        self.dimension, self.dense, self.before = dimension, dense, before

    def __call__(self, module: nn.Module, args: Any, output: Tensor) -> Tensor:
        mask = _along(self.mask, output, self.dimension)
        if not self.dense:
            return output * mask
        if self.before:
            mask = mask.clamp(min=FAINT)
        # (in this order: output + (masked - output) would round off what is faint)
        return (output - output.detach()) + (output * mask).detach()


class Silence(nn.Module):
    """In an exported model: the neurons that stay zero for good."""

    mask: Tensor

    def __init__(self, mask: Tensor, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.register_buffer("mask", mask.clone())

    def forward(self, x: Tensor) -> Tensor:
        # (in a way that torch.fx can trace)
        return (x.transpose(self.dimension, -1) * self.mask).transpose(self.dimension, -1)


def _along(mask: Tensor, like: Tensor, dimension: int) -> Tensor:
    shape = [1] * like.dim()
    shape[dimension] = -1
    return mask.to(like).reshape(shape)  # under autocast the output keeps its type.to(like)


def check_activations(
    model: nn.Module, names: Iterable[str], activations: Mapping[str, str]
) -> None:
    """Every pruned weight's layer must have a module of its own behind it."""
    modules = dict(model.named_modules())
    everywhere = list(model.named_modules(remove_duplicate=False))
    for layer in (name.rpartition(".")[0] for name in names):
        place = activations.get(layer)
        if place is None:
            raise bad_value("activations", dict(activations), f"says nothing of layer {layer!r}")
        if place not in modules:
            raise bad_value("activations", place, "the model has no module of this name")
        shared = [name for name, each in everywhere if each is modules[place]]
        if list(activations.values()).count(place) > 1 or len(shared) > 1:
            raise UsageError(
                f"activations: {place} stands behind several layers; give each its own"
            )


def activation_masks(
    model: nn.Module,
    pruned: Mapping[str, PrunedParameter],
    activations: Mapping[str, str],
    update: str,
) -> list[ActivationMask]:
    """Attach a mask for every pruned layer: ``activations`` has the name of the module whose output
    is masked for each of the layers' names."""
    modules = dict(model.named_modules())
    found = []
    for name, each in pruned.items():
        layer = name.rpartition(".")[0]
        place = activations[layer]
        convolution = isinstance(modules[layer], (nn.Conv1d, nn.Conv2d, nn.Conv3d, *TRANSPOSED))
        neurons = torch.ones(each.filters.count).to(each.kept)
        along = 1 if convolution else -1
        before = place == layer or isinstance(modules[place], NORMS)
        mask = ActivationMask(layer, place, neurons, along, update == "dense", before)
        modules[place].register_forward_hook(mask)
        found.append(mask)
    return found


def without_activation_masks(
    model: nn.Module, only: Iterable[ActivationMask] | None = None
) -> list[ActivationMask]:
    """Take such hooks off a model, all or ``only`` these; gives them."""
    wanted = None if only is None else {id(each) for each in only}
    found = []
    for module in model.modules():
        for key, hook in list(module._forward_hooks.items()):
            if isinstance(hook, ActivationMask) and (wanted is None or id(hook) in wanted):
                del module._forward_hooks[key]
                found.append(hook)
    return found
