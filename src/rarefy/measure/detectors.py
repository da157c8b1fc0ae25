"""Which neurons detect which feature at the start, and what becomes of them (004 App. C, G.1).

Features are coordinates of the patches, (0: v_+, 1: v_-, 2 + c: subclass c), so that <w, v> is an
entry of w. A *set* is a mask (run, output, m, feature).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.data.granularity_labels import Labels

STDS = 3.0
"""Noise to be reckoned with, in stds of a neuron's response to it: one patch in 740 has more."""


@dataclass(frozen=True)
class DetectorSets:
    """printed: S*(v) of Def. C.1 and G.1 to the letter, open on v and on no other word of the
    dictionary; detector: the same, if only words that occur in the data count, with the margins
    that strengths and noise need; able: S(v) with those margins, perhaps open on a patch of v."""

    printed: Tensor
    detector: Tensor
    able: Tensor


def detector_sets(
    weights: Tensor, bias: Tensor, features: int, spread: float, sigma: float
) -> DetectorSets:
    """Sets of neurons that begin with these weights, (run, output, m, d), and biases, whose own
    threshold |b| = sigma_0 c_b sqrt(log d) is the middle of all margins.

    features: words that occur; spread: iota; sigma: of the noise. The printed margin 1/log^5(d)
    covers the noise of the paper; at a finite d a neuron next to its threshold is open on some
    patches of a feature and shut on others.
    """
    d = weights.shape[3]
    if not 1 <= features <= d:
        raise bad_value("features", features, f"must be in 1..d={d}")
    if d < 3:
        raise bad_value("d", d, "must be at least 3: log(d) must exceed 1")
    margin = math.log(d) ** -6  # (log d -+ 1/log^5 d)/log d = 1 -+ margin
    level = -bias[..., None]
    low, high = level * math.sqrt(1 - margin), level * math.sqrt(1 + margin)
    words = (weights >= low).sum(dim=3, keepdim=True)
    own = weights[..., :features]
    # who is sure of v is also able on it: one word in all means no other
    printed = (own >= high) & (words == 1)
    noise = STDS * sigma * torch.linalg.vector_norm(weights, dim=3, keepdim=True)
    able = own * math.sqrt(1 + spread) + noise >= low
    sure = own * math.sqrt(1 - spread) - noise >= high
    return DetectorSets(printed, sure & (able.sum(dim=3, keepdim=True) == 1), able)


def responses(weights: Tensor, bias: Tensor, features: int, strength: float = 1.0) -> Tensor:
    """ReLU(<w, alpha v> + b) of every neuron, without noise: (run, output, m, feature)."""
    return torch.relu(strength * weights[..., :features] + bias[..., None])


def response(weights: Tensor, bias: Tensor, features: int, strength: float = 1.0) -> Tensor:
    """What an output answers to a patch of each feature, the left side of (7): (run, output,
    feature)."""
    return responses(weights, bias, features, strength).sum(dim=2)


def growth(weights: Tensor, initial: Tensor, members: Tensor) -> Tensor:
    """Mean of <w - w_0, v> over a set: (run, output, feature), NaN where it is empty."""
    features = members.shape[3]
    moved = weights[..., :features] - initial[..., :features]
    return (moved * members).sum(dim=2) / members.sum(dim=2)


@dataclass(frozen=True)
class Roles:
    """Whose feature is whose, (output, feature) each: the common feature of the output's side, the
    subclass features that have its label, and all others."""

    common: Tensor
    subclass: Tensor

    @property
    def other(self) -> Tensor:
        return ~(self.common | self.subclass)


def roles(labels: Labels) -> Roles:
    """Of the outputs of a network with these labels, noise and misalignment left out."""
    data = labels.data
    if labels.per_side > min(data.plus, data.minus):
        raise bad_value(
            "per_side", labels.per_side, "finer than subclasses: an output owns no subclass"
        )
    subclass = torch.arange(data.subclasses)
    side = data.superclass(subclass)
    within = torch.where(side == 0, subclass, subclass - data.plus)
    count = torch.where(side == 0, data.plus, data.minus)
    label = side * labels.per_side + within * labels.per_side // count
    output = torch.arange(labels.outputs)[:, None]
    common = torch.zeros(labels.outputs, 2 + data.subclasses, dtype=torch.bool)
    own = common.clone()
    common[:, :2] = labels.side()[:, None] == torch.arange(2)
    own[:, 2:] = label == output
    return Roles(common, own)


def pooled(values: Tensor, where: Tensor) -> Tensor:
    """Mean of (run, output, feature) over the pairs of a role, NaN left out: (run,)."""
    where = where.to(values.device) & ~values.isnan()
    return torch.where(where, values, 0.0).sum(dim=(1, 2)) / where.sum(dim=(1, 2))
