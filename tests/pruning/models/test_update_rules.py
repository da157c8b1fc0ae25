"""dense, masked and project: worked out by hand, against a slow reference, and as the laboratory
does it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rarefy import Pruner
from rarefy.pruning import masks as mask_functions
from rarefy.pruning import selection
from rarefy.pruning.schedules import constant, one_shot, periodic
from rarefy.pruning.updates import UPDATE_RULES, after_step, before_step, rule_codes
from rarefy.train import neuron_pruning, topk_pruning
from rarefy.train.descent import descend
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.optimisers import Sgd
from rarefy.train.topk_pruning import TopKPruning

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
    "masked": [
        ([[0.0, 1.0], [1.0, 3.0]], [[0.0, 1.0]]),
        ([[0.0, 1.0], [1.0, 2.0]], [[0.0, -2.0]]),
    ],
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
    """Dense weights after every update, by the definitions of held.py."""
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
    slow = Slow(kind, 0.1, decay)
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
    # or the rules had nothing to disagree about (0.1 times a gradient lifts no zero to the top here)
    assert churn > 0 or (update, kind) == ("project", "sgd")


def test_the_three_rules_differ() -> None:
    """With masks that change, no two of them end alike."""
    ends = []
    for update in UPDATE_RULES:
        model, optimizer = two_layers()
        pruner = Pruner(model, optimizer, keep=1, update=update)
        descend_on_the_output(model, optimizer)
        ends.append(pruner.copy_of("dense")[0].weight)
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(ends, 2))


# ------------------------------------------------------------------------- as in the laboratory


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


# ------------------------------------------------------- neurons: whose weights get a gradient


def reached(activation: nn.Module, bias: float, **choices: Any) -> tuple[float, float]:
    """Percent of the pruned neurons whose incoming, and whose outgoing, weights get a gradient."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), activation, nn.Linear(8, 3))
    nn.init.constant_(model[0].bias, bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pruner = Pruner(model, optimizer, keep=0.5, granularity="neuron", layers="0", **choices)
    x, y = torch.randn(64, 6), torch.randn(64, 3)
    output = pruner.masked_branch(x) if choices.get("branches") else model(x)
    (output - y).square().mean().backward()
    pruned = ~pruner.held["0.weight"].neurons()
    assert int(pruned.sum()) == 4
    into = (model[0].weight.grad != 0).any(dim=1)[pruned]
    out = (model[2].weight.grad != 0).any(dim=0)[pruned]
    return 100 * into.double().mean().item(), 100 * out.double().mean().item()


ROWS: dict[str, Any] = {"update": "dense"}
ACTIVATION: dict[str, Any] = {"update": "dense", "activations": {"0": "1"}}
MASKED: dict[str, Any] = {"update": "masked"}
MASKED_ACTIVATION: dict[str, Any] = {"update": "masked", "activations": {"0": "1"}}
BRANCH: dict[str, Any] = {"update": "dense", "branches": True}


@pytest.mark.parametrize(
    ("choices", "activation", "expected"),
    [
        # incoming rows and bias: dead under ReLU whatever the bias, because it is masked with them
        (ROWS, nn.ReLU(), (0, 0)),
        (ROWS, nn.GELU(), (100, 0)),
        (ROWS, nn.Tanh(), (100, 0)),
        (BRANCH, nn.ReLU(), (0, 0)),
        (BRANCH, nn.GELU(), (100, 0)),
        # behind the non-linearity the incoming weights get the gradient of a neuron that is there
        (ACTIVATION, nn.ReLU(), (100, 0)),
        (ACTIVATION, nn.GELU(), (100, 0)),
        (MASKED, nn.ReLU(), (0, 0)),
        (MASKED, nn.GELU(), (0, 0)),
        (MASKED_ACTIVATION, nn.ReLU(), (0, 0)),
        (MASKED_ACTIVATION, nn.GELU(), (0, 0)),
    ],
)
@pytest.mark.parametrize("bias", [0.0, 0.1])
def test_whose_weights_get_a_gradient(
    choices: dict[str, Any], activation: nn.Module, expected: tuple[float, float], bias: float
) -> None:
    """No placement updates both sides, and zeroed rows are dead under ReLU: notes, section 3."""
    assert reached(activation, bias, **choices) == expected


def test_a_neuron_left_out_by_its_activation_is_updated_as_if_it_were_there() -> None:
    """By hand: h = relu(W x) with x = (1, 2), W = [[1, 0], [0, 3]], so h = (1, 6); f = 5 h1 + 7 h2.
    Keeping the larger neuron, f = 42; the first one's weights get 5 x = (5, 10) all the same, its
    outgoing weight nothing."""
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
        model[2].weight.copy_(torch.tensor([[5.0, 7.0]]))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    pruner = Pruner(
        model, optimizer, keep=1, granularity="neuron", layers="0", activations={"0": "1"}
    )
    output = model(torch.tensor([[1.0, 2.0]]))
    assert output.item() == 42.0
    output.backward()
    assert model[0].weight.grad.tolist() == [[5, 10], [7, 14]]
    assert model[2].weight.grad.tolist() == [[0, 6]]
    optimizer.step()  # norms |(-4, -10)| and |(-7, -11)|: the second stays
    assert model[0].weight.tolist() == [[-4, -10], [-7, -11]]
    assert pruner.masks["0.weight"].tolist() == [[False, False], [True, True]]
