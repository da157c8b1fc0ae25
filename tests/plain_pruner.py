"""The pruner's rules once more, in plain tensors and nothing of rarefy: what tests compare with.

A network of two layers, tanh(x A' + a) B' + b, of which weights are left out: of every row the
largest stay, or, with ``neurons``, whole rows of A by their norm, silent behind the tanh.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

RATE, INSIDE, HIDDEN, OUT = 0.1, 6, 8, 4
NAMES = ("0.weight", "0.bias", "2.weight", "2.bias")
NEURONS = {"granularity": "neuron", "layers": "0", "activations": {"0": "1"}}


@dataclass(frozen=True)
class Way:
    """A setting of ``Pruner``, and the same in the words of ``Plain``."""

    choices: dict[str, Any]
    rule: str = "dense"
    every: int = 1
    branch: bool = False
    neurons: bool = False


WAYS: dict[str, Way] = {
    "dense": Way({}),
    "masked": Way({"update": "masked"}, "masked"),
    "masked off phase": Way({"update": "masked"}, "masked", every=3),
    "project": Way({"update": "project"}, "project"),
    "project off phase": Way({"update": "project"}, "project", every=3),
    "branches": Way({"branches": True}, branch=True),
    "activations": Way(NEURONS, neurons=True),
    "activations masked": Way({**NEURONS, "update": "masked"}, "masked", neurons=True),
}


def network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(INSIDE, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, OUT)).double()


def batch(seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(100 + seed)
    kind: dict[str, Any] = {"generator": draw, "dtype": torch.float64}
    return torch.randn(16, INSIDE, **kind), torch.randn(16, OUT, **kind)


@dataclass
class Plain:
    """``dense``: all weights by name; ``masks``: 1 where one is kept, of those that are pruned."""

    way: Way
    dense: dict[str, Tensor]
    masks: dict[str, Tensor] = field(default_factory=dict)
    updates: int = 0
    fresh: bool = True
    """Whether masks were chosen after the last update."""

    def __post_init__(self) -> None:
        self.choose()

    def choose(self) -> None:
        if self.way.neurons:
            norms = self.dense["0.weight"].norm(dim=1)
            rows = torch.zeros(HIDDEN).scatter(0, norms.topk(HIDDEN // 2).indices, 1.0)
            self.masks = {"0.weight": rows[:, None].expand(HIDDEN, INSIDE).double()}
        else:
            self.masks = {name: half(self.dense[name]) for name in ("0.weight", "2.weight")}
        self.fresh = True
        self.project()

    def project(self) -> None:
        if self.way.rule == "project":
            for name, mask in self.masks.items():
                self.dense[name] = self.dense[name] * mask

    def silent(self) -> dict[str, Tensor]:
        """Masks of what stands still under the rule "masked": a silent neuron's bias too."""
        return self.masks | ({"0.bias": self.masks["0.weight"][:, 0]} if self.way.neurons else {})

    def acting(self) -> dict[str, Tensor]:
        """What must stand in the model's parameters."""
        found = dict(self.dense)
        if self.way.rule != "project" and not self.way.branch and not self.way.neurons:
            found |= {name: found[name] * mask for name, mask in self.masks.items()}
        return found

    def gradients(self, at: int) -> dict[str, Tensor]:
        """Of the model's loss, and of the masked branch's; the mask is passed over backwards."""
        x, y = batch(at)
        points = [self.acting()]
        if self.way.branch:
            points.append({n: w * self.masks.get(n, 1.0) for n, w in self.dense.items()})
        total = {name: torch.zeros_like(each) for name, each in self.dense.items()}
        for point in points:
            leaves = {name: each.clone().requires_grad_() for name, each in point.items()}
            hidden = torch.tanh(x @ leaves["0.weight"].T + leaves["0.bias"])
            if self.way.neurons:
                shown = hidden * self.masks["0.weight"][:, 0]
                passed = self.way.rule == "dense"
                hidden = hidden + (shown - hidden).detach() if passed else shown
            loss = (hidden @ leaves["2.weight"].T + leaves["2.bias"] - y).square().mean()
            for name, each in zip(leaves, torch.autograd.grad(loss, leaves.values()), strict=True):
                total[name] = total[name] + each
        if self.way.rule == "masked":
            total |= {name: total[name] * mask for name, mask in self.silent().items()}
        return total

    def update(self, at: int) -> None:
        for name, gradient in self.gradients(at).items():
            self.dense[name] = self.dense[name] - RATE * gradient
        self.updates, self.fresh = self.updates + 1, False
        if self.updates % self.way.every == 0:
            self.choose()

    def load(self, weights: dict[str, Tensor]) -> None:
        self.dense = dict(weights)
        self.choose()

    def broken_off(self, moved: dict[str, Tensor]) -> None:
        """An update that moved something before it failed, and does not count."""
        for name, by in moved.items():
            stands = self.silent().get(name) if self.way.rule == "masked" else None
            self.dense[name] = self.dense[name] + by * (1.0 if stands is None else stands)
        if self.fresh:
            self.project()

    def another_optimiser(self, at: int) -> None:
        """What it leaves in the model are the dense weights; masks are in force again."""
        acting, gradients = self.acting(), self.gradients(at)
        self.dense = {name: acting[name] - RATE * gradients[name] for name in acting}
        if self.fresh:
            self.project()


def half(weight: Tensor) -> Tensor:
    """Of every row the larger half."""
    chosen = weight.abs().topk(weight.shape[1] // 2, dim=1).indices
    return torch.zeros_like(weight).scatter(1, chosen, 1.0)
