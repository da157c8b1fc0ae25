"""Every method against the same training written out: plain networks, autograd, float64."""

from __future__ import annotations

import copy

import pytest
import torch
from small_pretrainings import STEPS, batches, encoder, pretraining
from torch import Tensor, nn
from torch.nn import functional

from rarefy.core.contracts import Context
from rarefy.core.rng import key
from rarefy.train.image_batches import generator_for
from rarefy.train.simclr.pretraining import Pretraining

RATE, DECAY, TAU, EPOCHS = 0.125, 0.01, 0.25, 2
UPDATES = EPOCHS * STEPS
RUN, CPU = 17, torch.device("cpu")
KERNELS = ("backbone.network.0.weight", "backbone.network.4.weight")
TIGHT = {"atol": 1e-9, "rtol": 0.0}
"""float64: rounding, which eight updates make grow; a wrong gradient is off by 1e-3 or more."""


def symmetric_loss(a: Tensor, b: Tensor) -> Tensor:
    """NT-Xent as a classification of 2n points into 2n - 1 others."""
    points = functional.normalize(torch.cat([a, b]), dim=1)
    count = len(a)
    logits = points @ points.T / TAU
    logits = logits.masked_fill(torch.eye(2 * count, dtype=torch.bool), -torch.inf)
    partner = torch.arange(2 * count).roll(count)
    return functional.cross_entropy(logits, partner)


def one_sided_loss(a: Tensor, b: Tensor) -> Tensor:
    a, b = functional.normalize(a, dim=1), functional.normalize(b, dim=1).detach()
    return functional.cross_entropy(a @ b.T / TAU, torch.arange(len(a)))


def largest(weights: dict[str, Tensor], keep: float) -> dict[str, Tensor]:
    """1 for the largest entries of all kernels together."""
    sizes = torch.cat([weights[name].abs().flatten() for name in KERNELS])
    bound = sizes.sort(descending=True).values[round(keep * len(sizes)) - 1]
    return {name: (weights[name].abs() >= bound).double() for name in KERNELS}


class ByHand:
    """Two plain networks, into which the weights are written before every update."""

    def __init__(self, method: str) -> None:
        kind, _, words = method.partition("+")
        self.kind, _, share = kind.partition(":")
        self.keep, self.words = float(share or 1), words.split("+")
        self.every = 1 if "step" in words or self.kind == "pruned" else STEPS
        self.draws = torch.Generator().manual_seed(key(RUN, "masks") & (2**63 - 1))
        self.dense, self.masked = encoder().double(), encoder().double()
        self.weights = {name: one.detach().clone() for name, one in self.dense.named_parameters()}
        norms = [
            f"{place}.{name}"
            for place, module in self.dense.named_modules()
            if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d)
            for name in ("weight", "bias")
        ]
        mine = norms if "own-norms" in self.words else []
        self.own = {name: self.weights[name].clone() for name in mine}
        self.masks: dict[str, Tensor] = {}

    def train(self) -> None:
        shown = batches(dtype=torch.float64)
        views = [one for epoch in range(EPOCHS) for one in shown.epoch(epoch)]
        for step in range(UPDATES):
            self._choose(step)
            self._update(views[step], self._factors(step))
        self._choose(UPDATES)  # due after the last update as well

    def _choose(self, step: int) -> None:
        if step % self.every or ("frozen" in self.words and step):
            return
        scores = self.weights
        if "random" in self.words:
            shapes = {name: scores[name].shape for name in KERNELS}
            scores = {n: torch.rand(shape, generator=self.draws) for n, shape in shapes.items()}
        self.masks = largest(scores, self.keep)

    def _factors(self, step: int) -> dict[str, Tensor]:
        draws, found = generator_for(CPU, RUN, "disturbance", step), dict(self.masks)
        for name in KERNELS if "noise" in self.words or "dropout" in self.words else ():
            squares = self.weights[name] ** 2
            out = (squares * (1 - self.masks[name])).sum() / squares.sum()
            like = {"size": squares.shape, "generator": draws, "dtype": torch.float64}
            if "dropout" in self.words:
                found[name] = (torch.rand(**like) < 1 - out).double()
            else:
                found[name] = 1 + out.sqrt() * torch.randn(**like)
        return found

    def _update(self, views: Tensor, factors: dict[str, Tensor]) -> None:
        left = {name: self.weights[name] * factor for name, factor in factors.items()}
        self.dense.load_state_dict(self.weights, strict=False)
        self.masked.load_state_dict({**self.weights, **left, **self.own}, strict=False)
        if self.kind == "branches":
            first = self.masked if "both" in self.words else self.dense
            a, b = first(views[0]), self.masked(views[1])
        else:
            a, b = self.masked(torch.cat([views[0], views[1]])).chunk(2)
        (one_sided_loss if "one-sided" in self.words else symmetric_loss)(a, b).backward()
        theirs = dict(self.masked.named_parameters())
        for name, parameter in self.dense.named_parameters():
            first, second = (taken(one) for one in (parameter, theirs[name]))
            if self.kind == "branches" and name in self.masks and "straight" not in self.words:
                second = second * factors[name]
            if name in self.own:
                self.own[name] -= RATE * second
                second = torch.zeros_like(second)
            decay = DECAY if parameter.ndim > 1 else 0.0
            # 000 Algorithm 1: all weights move, with the gradient at the masked ones
            self.weights[name] -= RATE * (first + second + decay * self.weights[name])


def taken(parameter: nn.Parameter) -> Tensor:
    """A gradient, which is then gone."""
    found, parameter.grad = parameter.grad, None
    return torch.zeros_like(parameter) if found is None else found


def trained(method: str) -> Pretraining:
    plain = {"momentum": 0.0, "schedule": "constant", "warm_up": 0.0, "weight_decay": DECAY}
    made = pretraining(
        method, dtype=torch.float64, tau=TAU, epochs=EPOCHS, learning_rate=RATE, **plain
    )
    made.run(Context())
    return made


def close(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        torch.testing.assert_close(value, second[name], msg=name, **TIGHT)


METHODS = (
    "simclr",
    "simclr+one-sided",
    "pruned:0.5",
    "pruned:0.2+one-sided",
    "branches:0.3",
    "branches:0.3+step",
    "branches:0.3+straight",
    "branches:0.3+own-norms",
    "branches:0.3+own-norms+straight+step",
    "branches:0.3+random",
    "branches:0.3+frozen",
    "branches:0.3+random+frozen",
    "branches:0.3+both",
    "branches:0.3+both+straight",
    "branches:0.3+dropout",
    "branches:0.3+noise",
    "branches:0.3+noise+both",
    "branches:0.3+dropout+own-norms+straight+step",
)


@pytest.mark.quick(
    "branches:0.3+noise+both",
    "branches:0.3+step",
    "branches:0.3",
    "pruned:0.2+one-sided",
    "branches:0.3+dropout+own-norms+straight+step",
    "branches:0.3+own-norms",
)
@pytest.mark.parametrize("method", METHODS)
def test_a_training_is_the_one_written_out(method: str) -> None:
    made, hand = trained(method), ByHand(method)
    hand.train()
    dense = made.export_encoder("dense")
    close(dict(dense.named_parameters()), hand.weights)
    seen = hand.dense if hand.kind == "branches" else hand.masked
    close(dict(made.model.named_buffers()), dict(seen.named_buffers()))
    assert made.has_foreign_statistics == (hand.kind == "pruned" or "both" in hand.words)
    if made.pruner is None:
        return
    assert all(torch.equal(made.pruner.masks[name], hand.masks[name] != 0) for name in KERNELS)
    if made.method.masked:
        masked = dict(made.export_encoder("masked").named_parameters())
        left = {name: hand.weights[name] * mask for name, mask in hand.masks.items()}
        close(masked, {**hand.weights, **left, **hand.own})
    if made.pruner.branch is not None:
        close(dict(made.pruner.branch.buffers), dict(hand.masked.named_buffers()))
        close(dict(made.pruner.branch.own), hand.own)


def test_the_methods_differ() -> None:
    """Else the test above could not tell one from another."""
    ends = {}
    for method in METHODS:
        hand = ByHand(method)
        hand.train()
        ends[method] = hand.weights[KERNELS[1]]
    for number, first in enumerate(METHODS):
        for second in METHODS[:number]:
            assert (ends[first] - ends[second]).abs().max() > 1e-3, (first, second)


def test_filters_left_out_learn_as_if_they_were_there() -> None:
    """Masks behind every ReLU, passed over in the backward pass (000 eq. (5)), against masks before
    it, where the network's ReLU is no module that could be asked."""
    made = pretraining("pruned:0.5+neuron", dtype=torch.float64, tau=TAU)
    assert made.pruner is not None
    views = next(made.batches.epoch(0))
    plain = encoder().double()
    plain.load_state_dict(made.model.state_dict())
    found = made.loss_of(views).loss
    found.backward()

    def behind(kernel: str, shown: Tensor) -> Tensor:
        kept = made.pruner.masks[kernel].flatten(1).any(dim=1)[:, None, None]
        return shown - (shown * ~kept).detach()

    network = plain.backbone.network
    shown = behind(KERNELS[0], network[:3](views.flatten(0, 1)))
    shown = behind(KERNELS[1], network[4:](shown))
    loss = symmetric_loss(*plain.projection(shown.mean(dim=(2, 3))).chunk(2))
    loss.backward()
    torch.testing.assert_close(found, loss, **TIGHT)
    for name, parameter in made.model.named_parameters():
        wanted = plain.get_parameter(name).grad
        torch.testing.assert_close(parameter.grad, wanted, msg=name, **TIGHT)
        if name in KERNELS:
            assert bool((wanted.flatten(1).norm(dim=1) > 1e-3).all())


def test_the_forward_pass_of_pruned_is_the_masked_one() -> None:
    """A hand-masked copy gives the same loss, the dense weights another."""
    made = pretraining("pruned:0.3", dtype=torch.float64)
    views = next(made.batches.epoch(0))
    made.advance(views)
    loss = made.loss_of(views).loss
    masked, dense = copy.deepcopy(made.model), made.export_encoder("dense")
    with torch.no_grad():
        for name, parameter in masked.named_parameters():
            if name in KERNELS:
                assert made.pruner is not None
                parameter.copy_(dense.get_parameter(name) * made.pruner.masks[name])
    for network, same in ((masked, True), (dense, False)):
        a, b = network(views.flatten(0, 1)).chunk(2)
        points = functional.normalize(torch.cat([a, b]), dim=1)
        logits = (points @ points.T / torch.tensor(0.2).double()).fill_diagonal_(-torch.inf)
        partner = torch.arange(len(points)).roll(len(a))
        # (0.2 is held in single precision)
        by_hand = functional.cross_entropy(logits, partner)
        assert bool(torch.isclose(loss, by_hand, atol=1e-6, rtol=0)) == same
