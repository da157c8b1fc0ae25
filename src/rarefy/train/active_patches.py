"""Which patches are shown to which neurons, and what comes of it: forward and backward (004 eq. 14,
16).

Nearly all neurons sleep through nearly all patches. A patch alpha v + zeta is normal with mean
alpha <w, v> and std sigma |w| to a neuron, whose threshold -b is mostly many of those stds away.
Patches of a feature, and those that are nothing but noise, are therefore shown only to neurons
within ``AWAKE`` stds of them: of a thousand million activations at most one is missed, and that
one is tiny.

A *set* is patches that are shown to the same neurons of a run. Sets of one kind have equally many
samples, in the order of the batch: all sets together are the whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.data.multi_view import MultiViewSamples
from rarefy.train.built_patches import BuiltPatches

AWAKE = 6.0
"""A neuron may see a patch if its threshold is at most so many stds of its response away."""
PICKING = 8
"""To pick a neuron out for a set costs about as much as to show it so many patches."""


@dataclass(frozen=True)
class ActivePatches:
    """patches: (run, set, patch, d); answer: (run, set, neuron, patch); neurons: which of a run's
    they are, (run, set, neuron), None for all; shape: the patches of a set are (part, slot, sample)
    of it, samples last."""

    patches: Tensor
    answer: Tensor
    neurons: Tensor | None
    shape: tuple[int, int, int]

    @classmethod
    def of(
        cls, rows: Tensor, level: Tensor, patches: Tensor, neurons: Tensor | None, linear: bool
    ) -> ActivePatches:
        """rows: (run, neuron, d); level: their biases, (run, neuron); patches: (run, set, slot,
        sample, d), one set of all if ``neurons`` is None."""
        sets, slots, samples = patches.shape[1:4]
        if neurons is None:
            flat = patches.flatten(1, 3)
            answer = torch.baddbmm(level[:, :, None], rows, flat.transpose(1, 2))
            shape = (sets, slots, samples)
            return cls(flat[:, None], _opened(answer, linear)[:, None], None, shape)
        flat = patches.flatten(2, 3).flatten(0, 1)
        some, bias = _taken(rows, neurons), level.gather(1, neurons.flatten(1))
        answer = torch.baddbmm(
            bias.reshape(len(flat), -1, 1), some.flatten(0, 1), flat.transpose(1, 2)
        )
        answer = _opened(answer, linear).unflatten(0, (len(rows), sets))
        return cls(flat.unflatten(0, (len(rows), sets)), answer, neurons, (1, slots, samples))

    def scores(self, outputs: int, m: int) -> Tensor:
        """Sum over an output's m neurons and a sample's patches: (run, output, n)."""
        runs, sets = self.answer.shape[:2]
        if self.neurons is None:
            each = self.answer[:, 0].unflatten(1, (outputs, m)).sum(dim=2)
            return each.unflatten(2, self.shape).sum(dim=3).flatten(2)
        each = self.answer.unflatten(3, self.shape[1:]).sum(dim=3)
        place = self._owners(self.neurons, m)
        total = each.new_zeros(runs * outputs * sets, each.shape[3])
        total = total.index_add(0, _flat(place, outputs * sets), each.flatten(0, 2))
        return total.reshape(runs, outputs, -1)

    def combination(self, residual: Tensor, m: int, linear: bool) -> tuple[Tensor, Tensor]:
        """Some neurons, (run, some), and for each the sum of residual times patch over patches it
        is open on, (run, some, d); residual: (run, output, n). A neuron may come once a set; all
        that do not come are shut."""
        runs, sets, count, _ = self.answer.shape
        if linear:
            chosen = torch.arange(count, device=residual.device).expand(runs, sets, -1)
            open_on = torch.ones_like(self.answer)
        else:
            chosen = _largest(self.answer.amax(dim=3))
            open_on = _taken(self.answer.flatten(0, 1), chosen.flatten(0, 1)).sign_()
            open_on = open_on.unflatten(0, (runs, sets))
        rows = chosen if self.neurons is None else self.neurons.gather(2, chosen)
        part, slots, samples = self.shape
        each = residual.reshape(runs, -1, part * samples)  # a set's samples of an output
        weight = _taken(each, self._owners(rows, m))
        weight = weight.reshape(runs, sets, -1, part, 1, samples)
        parts = open_on.unflatten(3, (part, slots, samples)).mul_(weight).flatten(3)
        found = torch.bmm(parts.flatten(0, 1), self.patches.flatten(0, 1))
        return rows.flatten(1), found.reshape(runs, -1, found.shape[2])

    def add_gradient(self, total: Tensor, residual: Tensor, m: int, linear: bool) -> None:
        """To ``total``, (run * neuron, d), what ``combination`` gives."""
        rows, part = self.combination(residual, m, linear)
        total.index_add_(0, _flat(rows, residual.shape[1] * m), part.flatten(0, 1))

    def _owners(self, neurons: Tensor, m: int) -> Tensor:
        """Place of each neuron's output and set among all (output, set): (run, set * neuron)."""
        sets = neurons.shape[1]
        number = torch.arange(sets, device=neurons.device)[:, None]
        return (neurons // m * sets + number).flatten(1)


def find_active_patches(
    weights: Tensor,
    bias: Tensor,
    views: MultiViewSamples,
    linear: bool,
    compile_kernels: bool = False,
) -> list[ActivePatches | BuiltPatches]:
    """All patches to all neurons that may be open on them. weights: (run, output, m, d). A
    ``linear`` neuron is open on everything. ``compile_kernels``: without autograd, by C++."""
    rows, level = weights.flatten(1, 2), bias.flatten(1, 2)
    noise_stds = AWAKE * views.sigma * torch.linalg.vector_norm(rows.detach(), dim=2)
    spare = level.detach() + noise_stds  # above the threshold, with all luck in noise
    found: list[ActivePatches | BuiltPatches] = []
    by_cpp = compile_kernels and not linear and not torch.is_grad_enabled()
    for patches, features in _kinds(views):
        built = None
        if by_cpp and features is not None:
            numbers = torch.arange(rows.shape[2])[features].tolist()
            built = BuiltPatches.of(patches, numbers, rows, level, spare, views.strongest)
        if built is not None:
            found.append(built)
            continue
        neurons = None
        if features is not None and not linear:
            along = torch.relu(rows.detach()[..., features]).transpose(1, 2)
            neurons = _largest(spare[:, None] + views.strongest * along)
            if not _pays(neurons.shape[2] / rows.shape[1], patches.shape[2] * patches.shape[3]):
                neurons = None
        if neurons is None or neurons.shape[2]:
            found.append(ActivePatches.of(rows, level, patches, neurons, linear))
    if views.rest and (linear or not bool((spare <= 0).all())):
        noise = views.noise().transpose(1, 2)[:, None]
        built = BuiltPatches.of(noise, None, rows, level, spare, 0.0) if by_cpp else None
        neurons = None if linear or built is not None else _largest(spare[:, None])
        found.append(built or ActivePatches.of(rows, level, noise, neurons, linear))
    return found


def combine_gradients(
    shown: Sequence[ActivePatches | BuiltPatches], residual: Tensor, weights: Tensor, linear: bool
) -> Tensor:
    """Sum of residual times patch over all patches that each neuron is open on, (run, output, m,
    d); residual: (run, output, n)."""
    runs, outputs, m, d = weights.shape
    found = weights.new_zeros(runs * outputs * m, d)
    for each in shown:
        each.add_gradient(found, residual, m, linear)
    return found.reshape(weights.shape)


def _kinds(views: MultiViewSamples) -> list[tuple[Tensor, slice | list[int] | None]]:
    """Patches by what they hold, (run, set, slot, sample, d), and the feature of each set."""
    patches = views.patches.transpose(1, 2)
    if not views.grouped:
        return [(patches[:, None], None)]
    features: dict[str, slice | list[int]] = {
        "own side": slice(0, 2),
        "other side": [1, 0],
        "subclass": slice(2, views.grouped),
    }
    sets, found = {"own side": 2, "other side": 2, "subclass": views.grouped - 2}, []
    for (_, holds), part in zip(
        views.layout, patches.split([count for count, _ in views.layout], dim=1), strict=True
    ):
        each = part.unflatten(2, (sets.get(holds, 1), -1)).transpose(1, 2)
        found.append((each, features.get(holds)))
    return found


def _pays(share: float, patches: int) -> bool:
    """Whether to pick out a share of the neurons for sets of so many patches. A product with few
    patches is half as fast as one with all."""
    return 2 * share * (patches + PICKING) < patches


def _opened(answer: Tensor, linear: bool) -> Tensor:
    # in place: after the products it is memory that takes the time
    return answer if linear else answer.relu_()


def _largest(values: Tensor) -> Tensor:
    """Indices along the last axis of what is positive: as many everywhere as where there are most,
    the next largest filling up."""
    most = int((~(values <= 0)).sum(dim=-1).max())  # what is not a number must show
    return torch.topk(values, most, dim=-1, sorted=False).indices


def _flat(index: Tensor, count: int) -> Tensor:
    """Index into (run * count, ...) from an index into each run's own ``count``, (run, ...)."""
    first = torch.arange(len(index), device=index.device) * count
    return (index.flatten(1) + first[:, None]).flatten()


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """values[run, index[run]]: (run, ..., rest of values). Whole rows: faster than ``gather``."""
    rows = values.flatten(0, 1).index_select(0, _flat(index, values.shape[1]))
    return rows.unflatten(0, index.shape)
