"""The multi-view network of 004 trained the plain way, for tests: one run, patch by patch, with
autograd; nothing is left out because it sleeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.multi_view import MultiView, MultiViewSamples
from rarefy.data.multi_view_sets import Batch
from rarefy.train.multi_view_classifier import initial_neurons

Rule = Callable[[Tensor], Tensor]
"""A neuron's movement, (output, m, d), to what its bias falls by, (output, m)."""


def all_patches(views: MultiViewSamples) -> Tensor:
    """(sample, patch, d) of the only run."""
    return torch.cat([views.patches, views.noise()], dim=2)[0]


def scores(weights: Tensor, bias: Tensor, patches: Tensor, linear: bool = False) -> Tensor:
    """(14): (sample, output)."""
    rows = []
    for sample in patches:
        seen = torch.einsum("cmd,pd->cmp", weights, sample) + bias[..., None]
        rows.append((seen if linear else torch.relu(seen)).sum(dim=(1, 2)))
    return torch.stack(rows)


def train(
    draws: Draws,
    batches: Callable[[int], Batch],
    outputs: int,
    *,
    d: int,
    neurons: int,
    sigma_0: float,
    threshold: float,
    lr: float,
    patches: int,
    steps: int,
    rule: Rule,
    linear: bool = False,
) -> tuple[Tensor, Tensor, float]:
    """Weights, biases, and the loss before the last update."""
    start = initial_neurons(draws, outputs, neurons, d, sigma_0, threshold)
    return descend(start["weights"][0], start["bias"][0], batches, lr, patches, steps, rule, linear)


def descend(
    weights: Tensor,
    bias: Tensor,
    batches: Callable[[int], Batch],
    lr: float,
    patches: int,
    steps: int,
    rule: Rule,
    linear: bool = False,
    per_side: int = 0,
) -> tuple[Tensor, Tensor, float]:
    """(16) by autograd; ``per_side``: answer by the maxima over so many outputs of each side."""
    last = float("nan")
    for step in range(steps):
        batch = batches(step)
        free = weights.clone().requires_grad_()
        answer = scores(free, bias, all_patches(batch.views), linear)
        if per_side:
            sides = [answer[:, :per_side].amax(dim=1), answer[:, per_side:].amax(dim=1)]
            answer = torch.stack(sides, dim=1)
        loss = torch.nn.functional.cross_entropy(answer, batch.label[0])
        (slope,) = torch.autograd.grad(loss, free)
        moved = -lr / patches * slope
        weights, bias, last = weights + moved, bias - rule(moved), float(loss.detach())
    return weights, bias, last


def margins(
    weights: Tensor,
    bias: Tensor,
    data: MultiView,
    draws: Draws,
    per_side: int,
    each: int,
    hard: bool,
    linear: bool = False,
) -> Tensor:
    """Score of the right side minus that of the wrong one, fresh samples; ``each`` of a subclass
    must fit into one chunk of tests."""
    subclass = torch.arange(data.subclasses).repeat_interleave(each)[None]
    views = data.sample(draws, subclass, hard, f"test {'hard' if hard else 'easy'}", 0)
    answer = scores(weights, bias, all_patches(views), linear)
    plus, minus = answer[:, :per_side].amax(dim=1), answer[:, per_side:].amax(dim=1)
    return torch.where(subclass[0] < data.plus, plus - minus, minus - plus)


def error(*network_and_samples: Any) -> float:
    """Share of fresh samples on the wrong side; arguments of ``margins``."""
    return float((margins(*network_and_samples) <= 0).double().mean())


def following(rate: float) -> Rule:
    """(18)."""
    return lambda moved: rate * torch.linalg.vector_norm(moved, dim=2)
