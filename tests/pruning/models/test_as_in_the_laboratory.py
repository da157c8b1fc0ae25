"""The laboratory's TopK (002) and Algorithm 1 (000) and the Pruner choose the same masks, with the
same functions, and give the same weights."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rarefy import Pruner
from rarefy.pruning import masks as mask_functions
from rarefy.pruning import selection
from rarefy.pruning.schedules import one_shot, periodic
from rarefy.pruning.update_rules import UPDATE_RULES, after_step, before_step, rule_codes
from rarefy.train import neuron_pruning, topk_pruning
from rarefy.train.descent import descend
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.optimisers import Sgd
from rarefy.train.topk_pruning import TopKPruning


def test_the_laboratory_and_the_pruner_choose_with_the_same_functions() -> None:
    """TopK of 002 and Algorithm 1 of 000."""
    for room in (selection, topk_pruning, neuron_pruning):
        assert room.keep_largest is mask_functions.keep_largest
    for room in (selection, neuron_pruning):
        assert room.kept_count is mask_functions.kept_count


@dataclass(frozen=True)
class Readout:
    """(v tanh(W x) - y)^2 with hand-given gradients at the weights that act."""

    x: Tensor
    y: Tensor
    shape: tuple[int, int]
    name: str
    pruning: NeuronPruning | TopKPruning

    def gradients(
        self, parameters: dict[str, Tensor], batch: Any
    ) -> tuple[Tensor, dict[str, Tensor]]:
        weight = parameters[self.name]
        acting = weight.reshape(self.shape)
        if isinstance(self.pruning, NeuronPruning):
            acting = acting * self.pruning.kept[0][:, None]
        acting = acting.clone().requires_grad_()
        with torch.enable_grad():
            loss = fit(functional.linear(self.x, acting), self.y)
        gradient = torch.autograd.grad(loss, acting)[0]
        return loss.detach()[None], {self.name: gradient.reshape(weight.shape)}

    def loss(self, parameters: dict[str, Tensor], batch: Any) -> Tensor:
        return self.gradients(parameters, batch)[0]


def fit(seen: Tensor, y: Tensor) -> Tensor:
    return (torch.tanh(seen).sum(dim=1) - y).square().mean()


def given_layer(outputs: int, inputs: int) -> tuple[nn.Linear, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(8)
    layer = nn.Linear(inputs, outputs, bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(torch.randn(outputs, inputs, generator=generator).double() / 4)
    x = torch.randn(12, inputs, generator=generator).double()
    return layer, x, 3 * torch.randn(12, generator=generator).double()


def pruned_by_pruner(
    layer: nn.Linear, x: Tensor, y: Tensor, steps: int, lr: float, decay: float, **choices: Any
) -> tuple[Pruner, list[Tensor], list[Tensor]]:
    """The masks with which each step is done, and what acts after each."""
    optimizer = torch.optim.SGD(layer.parameters(), lr=lr, weight_decay=decay)
    pruner = Pruner(layer, optimizer, **choices)
    used, after = [], []
    for _ in range(steps):
        used.append(pruner.masks["weight"])
        optimizer.zero_grad()
        fit(layer(x), y).backward()
        optimizer.step()
        after.append(layer.weight.detach().clone())
    return pruner, used, after


@pytest.mark.parametrize("update", UPDATE_RULES)
@pytest.mark.parametrize("begin", [0, 3])
def test_algorithm_1_is_the_pruner_of_neurons(update: str, begin: int) -> None:
    """000 Algorithm 1 in the laboratory, from its first pruned step on."""
    neurons, inputs, steps = 7, 4, 25
    layer, x, y = given_layer(neurons, inputs)
    start = layer.weight.detach().clone()
    share = torch.tensor([0.6], dtype=torch.float64)
    pruning = NeuronPruning(share, torch.tensor([begin]), rule_codes([update]), neurons)
    lab_masks: list[Tensor] = []
    found = descend(
        Readout(x, y, (neurons, inputs), "weights", pruning),
        {"weights": start[None]},
        lambda step: None,
        Sgd(0.2, weight_decay=0.02),
        steps,
        after_update=lambda state: lab_masks.append(pruning.kept[0].clone()),
        pruning=pruning,
    ).parameters["weights"]
    pruner, used, _ = pruned_by_pruner(
        layer, x, y, steps, 0.2, 0.02,
        keep=0.4, granularity="neuron", update=update, schedule=periodic(1, begin),
    )  # fmt: skip
    for lab, ours in zip(lab_masks, used, strict=True):
        assert torch.equal(lab[:, None].expand_as(ours), ours)
    changes = sum(int((a != b).sum()) for a, b in itertools.pairwise(lab_masks[begin:]))
    assert changes > 0 if update == "dense" else changes >= 0
    if update == "project":  # the laboratory sets to zero as the next step begins
        found = before_step(found, pruning.mask(found), pruning.rule)
    # float64; the order of decay and step differs
    dense = pruner.copy_of("dense").weight.detach()
    torch.testing.assert_close(dense, found[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("update", UPDATE_RULES)
def test_the_laboratorys_update_rules_are_the_pruners(update: str) -> None:
    """``before_step`` and ``after_step`` around a plain update, weight by weight."""
    layer, x, y = given_layer(5, 6)
    weight, code = layer.weight.detach().clone()[None], rule_codes([update])
    lab_masks = []
    for _ in range(12):
        kept = mask_functions.keep_largest(weight.abs(), 2)
        lab_masks.append(kept[0])
        before = before_step(weight, kept, code)
        acting = (before * kept)[0].clone().requires_grad_()
        gradient = torch.autograd.grad(fit(functional.linear(x, acting), y), acting)[0]
        weight = after_step(before, before - 0.3 * gradient, kept, code)
    pruner, used, _ = pruned_by_pruner(layer, x, y, 12, 0.3, 0.0, keep=2, update=update)
    assert all(torch.equal(a, b) for a, b in zip(lab_masks, used, strict=True))
    if update == "project":
        weight = before_step(weight, mask_functions.keep_largest(weight.abs(), 2), code)
    dense = pruner.copy_of("dense").weight.detach()
    torch.testing.assert_close(dense, weight[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("reading", "first", "every", "choices"),
    [
        ("revive", 1, 1, {"update": "project", "schedule": periodic(1, 1)}),
        ("revive", 2, 3, {"update": "project", "schedule": periodic(3, 2)}),
        ("fixed", 1, 1, {"update": "masked", "schedule": one_shot(1)}),
        ("fixed", 4, 1, {"update": "masked", "schedule": one_shot(4)}),
    ],
)
def test_topk_of_the_laboratory_is_the_pruner_of_filters(
    reading: str, first: int, every: int, choices: dict[str, Any]
) -> None:
    """002 Sec. 3: of every filter the ``keep`` coordinates of largest magnitude."""
    classes, filters, d, keep, steps = 2, 3, 6, 2, 14
    layer, x, y = given_layer(classes * filters, d)
    start = layer.weight.detach().clone().reshape(1, classes, filters, d)
    pruning = TopKPruning(torch.tensor([keep]), reading, (classes, filters, d), first, every)
    found = descend(
        Readout(x, y, (classes * filters, d), "filters", pruning),
        {"filters": start},
        lambda step: None,
        Sgd(0.3),
        steps,
        trackers={"filters": lambda state: state.parameters["filters"]},
        record=range(1, steps + 1),
        pruning=pruning,
    ).records["filters"][0]
    pruner, _, after = pruned_by_pruner(layer, x, y, steps, 0.3, 0.0, keep=keep, **choices)
    for update, (lab, ours) in enumerate(zip(found, after, strict=True), start=1):
        lab = lab.reshape(classes * filters, d)
        torch.testing.assert_close(ours, lab, rtol=1e-9, atol=1e-12)
        assert torch.equal(ours != 0, lab != 0)
        if update >= first and (reading == "fixed" or (update - first) % every == 0):
            assert (ours != 0).sum(dim=1).tolist() == [keep] * len(ours)
    if reading == "fixed":
        support = pruning.support()
        assert support is not None
        assert torch.equal(pruner.masks["weight"], support.reshape(classes * filters, d))
