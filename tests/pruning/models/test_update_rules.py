"""dense, masked and project: worked out by hand, and against a slow reference."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rarefy import Pruner
from rarefy.pruning.schedules import constant
from rarefy.pruning.update_rules import UPDATE_RULES

Step = Callable[[], None]

# ------------------------------------------------------------------------------------- by hand

# f(x) = V relu(W x), x = (1, 1), the loss is f itself, learning rate 1, one weight kept of every
# filter. W = [[2, 1], [1, 3]] acts as [[2, 0], [0, 3]], V = [[2, 1]] as [[2, 0]]. Then h = (2, 3),
#     dV = h = (2, 3),    dh = (2, 0),    dW = dh x' = [[2, 2], [0, 0]].
# Second step, from what each rule made of it: written with each rule below.
HAND = {
    # all move: W = [[0, -1], [1, 3]], V = [0, -2]. What is largest now acts: -1, 3 and -2.
    # Then h = (relu(-1), 3) = (0, 3), dV = (0, 3), dh = (0, -2), dW = [[0, 0], [-2, -2]]
    "dense": [
        ([[0.0, -1.0], [1.0, 3.0]], [[0.0, -2.0]]),
        ([[0.0, -1.0], [3.0, 5.0]], [[0.0, -5.0]]),
    ],
    # only what acts moves: W = [[0, 1], [1, 3]], V = [0, 1]: the waiting 1s come back as they were.
    # Then h = (1, 3), dV = (., 3), dh = (0, 1), dW = [[., 0], [., 1]]
    "masked": [([[0.0, 1.0], [1.0, 3.0]], [[0.0, 1.0]]), ([[0.0, 1.0], [1.0, 2.0]], [[0.0, -2.0]])],
    # zeros move too: W = [[2, 0], [0, 3]] - dW = [[0, -2], [0, 3]], V = [2, 0] - dV = [0, -3].
    # Then h = (relu(-2), 3) = (0, 3), dV = (0, 3), dh = (0, -3), dW = [[0, 0], [-3, -3]]: [3, 6] is
    # projected to [0, 6]
    "project": [
        ([[0.0, -2.0], [0.0, 3.0]], [[0.0, -3.0]]),
        ([[0.0, -2.0], [0.0, 6.0]], [[0.0, -6.0]]),
    ],
}


def two_layers() -> tuple[nn.Sequential, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
        model[2].weight.copy_(torch.tensor([[2.0, 1.0]]))
    return model, torch.optim.SGD(model.parameters(), lr=1.0)


def descend_on_the_output(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("update", UPDATE_RULES)
def test_two_steps_by_hand(update: str) -> None:
    model, optimizer = two_layers()
    pruner = Pruner(model, optimizer, keep=1, update=update)
    assert model[0].weight.tolist() == [[2, 0], [0, 3]] and model[2].weight.tolist() == [[2, 0]]
    for first, second in HAND[update]:
        descend_on_the_output(model, optimizer)
        dense = pruner.copy_of("dense")
        assert dense[0].weight.tolist() == first and dense[2].weight.tolist() == second
        # what acts is the largest of every filter
        largest = [[value if abs(value) == max(map(abs, row)) else 0.0 for value in row]
                   for row in first]  # fmt: skip
        assert model[0].weight.tolist() == largest
        assert model[2].weight[0].count_nonzero() == 1


def test_gradients_of_what_is_left_out_by_hand() -> None:
    """dense and project have the whole gradient, masked only that of what acts."""
    for update in UPDATE_RULES:
        model, optimizer = two_layers()
        pruner = Pruner(model, optimizer, keep=1, update=update)
        model(torch.ones(1, 2)).sum().backward()
        whole = update != "masked"
        assert model[0].weight.grad.tolist() == [[2, 2 if whole else 0], [0, 0]]
        assert model[2].weight.grad.tolist() == [[2, 3 if whole else 0]]
        assert pruner.step == 0


def test_project_trains_on_densely_until_masks_are_chosen_again() -> None:
    """By hand, every second update: after the first, W = [[0, -2], [0, 3]], V = [0, -3] as it comes
    from the optimiser, with all its entries. h = (0, 3); dV = (0, 3), dh = (0, -3)."""
    model, optimizer = two_layers()
    pruner = Pruner(model, optimizer, keep=1, update="project", schedule=constant(every=2))
    descend_on_the_output(model, optimizer)
    assert model[0].weight.tolist() == [[0, -2], [0, 3]] and model[2].weight.tolist() == [[0, -3]]
    # the masks in force are those of the first choice: [[1, 0], [0, 1]] and [1, 0]
    with pruner.masked():
        assert model[0].weight.tolist() == [[0, 0], [0, 3]]
        assert model[2].weight.tolist() == [[0, 0]]
    assert pruner.copy_of("projected")[2].weight.tolist() == [[0, -3]]
    descend_on_the_output(model, optimizer)
    assert model[0].weight.tolist() == [[0, -2], [0, 6]] and model[2].weight.tolist() == [[0, -6]]


# --------------------------------------------------------------------- against a slow reference


@dataclass
class Slow:
    """torch's optimisers from their formulas, a tensor at a time, in float64."""

    kind: str
    lr: float = 0.1
    decay: float = 0.0
    memory: dict[str, Any] = field(default_factory=dict)

    def moved(self, name: str, weight: Tensor, gradient: Tensor) -> Tensor:
        if self.kind == "adamw":
            m, v, t = self.memory.get(name, (0 * weight, 0 * weight, 0))
            m, v, t = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2, t + 1
            self.memory[name] = (m, v, t)
            decayed = weight * (1 - self.lr * self.decay)
            return decayed - self.lr * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
        gradient = gradient + self.decay * weight
        if self.kind == "momentum":
            gradient = 0.9 * self.memory[name] + gradient if name in self.memory else gradient
            self.memory[name] = gradient
        return weight - self.lr * gradient

    def forget(self, name: str, where: Tensor) -> None:
        if name in self.memory and self.kind == "momentum":
            self.memory[name] = self.memory[name] * ~where
        elif name in self.memory:
            m, v, t = self.memory[name]
            self.memory[name] = (m * ~where, v * ~where, t)

    def torchs(self, parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
        if self.kind == "adamw":
            return torch.optim.AdamW(parameters, lr=self.lr, weight_decay=self.decay)
        momentum = 0.9 if self.kind == "momentum" else 0.0
        return torch.optim.SGD(parameters, lr=self.lr, momentum=momentum, weight_decay=self.decay)


def top(weight: Tensor, keep: int) -> Tensor:
    order = weight.abs().argsort(dim=1, descending=True, stable=True)[:, :keep]
    return torch.zeros_like(weight, dtype=torch.bool).scatter_(1, order, True)


def slow_training(
    weights: dict[str, Tensor], slow: Slow, update: str, reset: bool, keep: int, batches: Any
) -> list[dict[str, Tensor]]:
    """Dense weights after every update, by the definitions of pruned.py."""
    pruned = [name for name in weights if name.endswith("weight")]
    mask = {name: top(weights[name], keep) for name in pruned}
    if update == "project":
        weights = {name: w * mask[name] if name in mask else w for name, w in weights.items()}
    states = []
    for x, y in batches:
        acting = {name: w * mask[name] if name in mask and update != "project" else w
                  for name, w in weights.items()}  # fmt: skip
        leaves = {name: w.clone().requires_grad_() for name, w in acting.items()}
        hidden = torch.tanh(x @ leaves["0.weight"].T + leaves["0.bias"])
        loss = (hidden @ leaves["2.weight"].T + leaves["2.bias"] - y).square().mean()
        gradients = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        new = {}
        for name, weight in weights.items():
            if name in mask and update == "masked":
                kept = mask[name]
                moved = slow.moved(name, acting[name], gradients[name] * kept)
                new[name] = torch.where(kept, moved, weight)
            else:
                new[name] = slow.moved(name, weight, gradients[name])
        weights = new
        for name in pruned:
            chosen = top(weights[name], keep)
            if reset:
                slow.forget(name, chosen != mask[name])
            mask[name] = chosen
            if update == "project":
                weights[name] = weights[name] * chosen
        states.append(weights)
    return states


@pytest.mark.parametrize("update", UPDATE_RULES)
@pytest.mark.parametrize("kind", ["sgd", "momentum", "adamw"])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("moments", ["keep", "reset"])
def test_every_rule_with_every_optimiser_is_its_definition(
    update: str, kind: str, decay: float, moments: str
) -> None:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    batches = [(torch.randn(4, 5).double(), torch.randn(4, 3).double()) for _ in range(8)]
    slow = Slow(kind, 1.0 if kind == "sgd" else 0.1, decay)
    expected = slow_training(start, slow, update, moments == "reset", 2, batches)
    optimizer = slow.torchs(model.parameters())
    pruner = Pruner(model, optimizer, keep=2, update=update, moments=moments)
    churn = 0
    for (x, y), state in zip(batches, expected, strict=True):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        before = pruner.masks
        optimizer.step()
        churn += sum(int((pruner.masks[name] != before[name]).sum()) for name in before)
        found = dict(pruner.copy_of("dense").named_parameters())
        for name, weight in state.items():
            # float64; the orders of a few sums differ
            torch.testing.assert_close(found[name].detach(), weight, rtol=1e-10, atol=1e-12)
            if name in pruner.masks:
                assert torch.equal(pruner.masks[name], top(weight, 2))
    assert churn > 0  # or the rules had nothing to disagree about


def test_the_three_rules_differ() -> None:
    """With masks that change, no two of them end alike."""
    ends = []
    for update in UPDATE_RULES:
        model, optimizer = two_layers()
        pruner = Pruner(model, optimizer, keep=1, update=update)
        descend_on_the_output(model, optimizer)
        ends.append(pruner.copy_of("dense")[0].weight)
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(ends, 2))
