"""A resumed training equals an uninterrupted one bit for bit, whatever is pruned and how."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from small_networks import cnn, cnn_batch
from torch import Tensor, nn

from rarefy import Pruner
from rarefy.pruning.regrowth import SET, RigL
from rarefy.pruning.schedules import constant, gradual, one_shot, periodic
from rarefy.pruning.update_rules import UPDATE_RULES

Training = tuple[nn.Module, torch.optim.Optimizer, Pruner]

STEPS, SAVED = 9, 4

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "momentum": lambda parameters: torch.optim.SGD(
        parameters, lr=0.05, momentum=0.9, weight_decay=0.01
    ),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.02),
}

CHOICES: dict[str, dict[str, Any]] = {
    "dense": {},
    "masked": {"update": "masked"},
    "project": {"update": "project"},
    "project off phase": {"update": "project", "schedule": constant(3)},
    "masked off phase": {"update": "masked", "schedule": constant(3)},
    "random": {"score": "random"},
    "random project": {"score": "random", "update": "project", "schedule": constant(2)},
    "saliency": {"score": "saliency"},
    "saliency masked": {"score": "saliency", "update": "masked"},
    "global": {"granularity": "global", "keep": 0.2},
    "erk": {"granularity": "layer", "distribution": "erk"},
    "given": {"distribution": {"0": 0.2, "6": 3}},
    "2:4": {"granularity": "2:4", "layers": "6"},
    "gradual": {"schedule": gradual(1, 8)},
    "one shot later": {"schedule": one_shot(6)},
    "frozen": {"freeze_at": 6},
    "not yet begun": {"update": "masked", "schedule": periodic(1, begin=6)},
    "SET": {"update": "masked", "regrow": SET(9)},
    "RigL": {"update": "masked", "regrow": RigL(9), "granularity": "global"},
    "RigL layer": {"update": "masked", "regrow": RigL(9), "granularity": "layer"},
    "branches": {"branches": True},
    "branches of neurons": {"branches": True, "granularity": "neuron", "masked_gradients": True},
    "neuron": {"granularity": "neuron"},
    "neuron masked": {"granularity": "neuron", "update": "masked"},
    "neuron project": {"granularity": "neuron", "update": "project"},
    "activations": {
        "granularity": "neuron", "layers": ["0", "3"], "activations": {"0": "2", "3": "4"},
    },
    "activations masked": {
        "granularity": "neuron", "layers": ["0", "3"], "activations": {"0": "2", "3": "4"},
        "update": "masked", "schedule": constant(2),
    },
    "own score": {"score": lambda name, weight, gradient: (weight - 0.1).abs()},
    "reset": {"moments": "reset"},
    "reset masked": {"moments": "reset", "update": "masked"},
    "reset project": {"moments": "reset", "update": "project", "schedule": constant(2)},
}  # fmt: skip


def begin(choices: dict[str, Any], kind: str, seed: int = 1) -> Training:
    model = cnn()
    if seed != 1:  # a resumed training begins somewhere else
        for parameter in model.parameters():
            nn.init.normal_(parameter)
    optimizer = OPTIMIZERS[kind](model.parameters())
    return model, optimizer, Pruner(model, optimizer, **{"keep": 0.5, **choices})


def go_on(training: Training, first: int, last: int) -> list[float]:
    model, optimizer, pruner = training
    losses = []
    for step in range(first, last):
        x, y = cnn_batch(step)
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        if pruner.branch is not None:
            loss = loss + (pruner.masked_branch(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def saved(training: Training) -> dict[str, Any]:
    """Through a file, as a person would, with nothing in it but tensors and plain values."""
    file = io.BytesIO()
    model, optimizer, pruner = training
    states = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "pruner": pruner.state_dict(),
    }
    torch.save(states, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def loaded(state: dict[str, Any], choices: dict[str, Any], kind: str, order: str) -> Training:
    """``order``: which of model (m), optimiser (o) and pruner (p) is loaded when; "P": the pruner
    is made (p: and loaded) only there."""
    model = cnn()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    optimizer = OPTIMIZERS[kind](model.parameters())
    pruner: Pruner | None = None
    if "P" not in order:
        pruner = Pruner(model, optimizer, **{"keep": 0.5, **choices})
    for letter in order:
        if letter == "m":
            model.load_state_dict(state["model"])
        elif letter == "o":
            optimizer.load_state_dict(state["optimizer"])
        elif letter == "P":
            pruner = Pruner(model, optimizer, **{"keep": 0.5, **choices})
        else:
            assert pruner is not None
            pruner.load_state_dict(state["pruner"])
    assert pruner is not None
    return model, optimizer, pruner


def same(first: Any, second: Any) -> bool:
    """Bit for bit, through dicts and lists."""
    if isinstance(first, Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def check_same(one: Training, other: Training) -> None:
    for a, b in zip(one, other, strict=True):
        assert same(a.state_dict(), b.state_dict()), type(a).__name__
    for _, optimizer, _ in (one, other):
        optimizer.zero_grad()  # a state has no gradients, which saliency would look at
    for weights in ("dense", "masked", "projected"):
        a, b = (training[2].copy_of(weights).state_dict() for training in (one, other))
        assert same(a, b), weights


ORDERS = ("mop", "pom", "moPp")
OFTEN = ("dense", "masked", "project off phase", "RigL", "branches of neurons", "neuron project",
         "activations masked", "reset masked", "reset project")  # fmt: skip
# every choice in one order, those with most to lose in all of them
CASES = [
    pytest.param(name, order, marks=[pytest.mark.slow] if turn and name not in OFTEN[:2] else [])
    for place, name in enumerate(CHOICES)
    for turn, order in enumerate(ORDERS[place % 3 :] + ORDERS[: place % 3])
    if name in OFTEN or not turn
]


@pytest.mark.parametrize(("name", "order"), CASES)
def test_a_resumed_training_is_the_uninterrupted_one(name: str, order: str) -> None:
    """Whatever is loaded first, and also if the pruner is made when model and optimiser are."""
    kind = {"mop": "momentum", "pom": "adamw", "moPp": "adamw"}[order]
    whole = begin(CHOICES[name], kind)
    go_on(whole, 0, SAVED)
    state = saved(whole)
    resumed = loaded(state, CHOICES[name], kind, order)
    check_same(whole, resumed)
    assert go_on(whole, SAVED, STEPS) == go_on(resumed, SAVED, STEPS)
    check_same(whole, resumed)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("update", UPDATE_RULES)
@pytest.mark.parametrize("moment", [0, 1, 3])
def test_at_every_moment_and_with_every_optimiser(kind: str, update: str, moment: int) -> None:
    choices = {"update": update, "schedule": constant(3)}
    whole = begin(choices, kind)
    go_on(whole, 0, moment)
    resumed = loaded(saved(whole), choices, kind, "mop")
    assert go_on(whole, moment, moment + 4) == go_on(resumed, moment, moment + 4)
    check_same(whole, resumed)


def test_without_the_pruners_state_a_resumed_training_is_another_one() -> None:
    """That the test above can fail."""
    for choices in (CHOICES["masked"], CHOICES["random"]):
        whole = begin(choices, "momentum")
        go_on(whole, 0, SAVED)
        resumed = loaded(saved(whole), choices, "momentum", "mo")
        losses = go_on(resumed, SAVED, STEPS)
        assert go_on(whole, SAVED, STEPS) != losses


@pytest.mark.parametrize("name", OFTEN)
def test_the_models_keys_and_their_order_stay(name: str) -> None:
    training = begin(CHOICES[name], "sgd")
    go_on(training, 0, 2)
    plain = cnn()
    assert list(training[0].state_dict()) == list(plain.state_dict())
    names = [name for name, _ in plain.named_parameters()]
    assert [name for name, _ in training[0].named_parameters()] == names


@pytest.mark.parametrize("name", [*OFTEN, "random", "SET", "saliency masked", "own score"])
def test_a_deep_copy_goes_on_as_the_original(name: str) -> None:
    whole = begin(CHOICES[name], "momentum")
    go_on(whole, 0, SAVED)
    copied: Training = copy.deepcopy(whole)
    assert copied[2].model is copied[0] and copied[2].optimizer is copied[1]
    before = copy.deepcopy(whole[0].state_dict())
    losses = go_on(copied, SAVED, STEPS)
    assert same(whole[0].state_dict(), before) and whole[2].step == SAVED
    assert go_on(whole, SAVED, STEPS) == losses
    check_same(whole, copied)


def test_a_state_is_a_snapshot() -> None:
    """Training on does not change it, and looking at the training does not change the training."""
    training = begin(CHOICES["random"], "momentum")
    go_on(training, 0, 2)
    state = training[2].state_dict()
    before = copy.deepcopy(state)
    other = copy.deepcopy(training)
    _, pruner = other[0], other[2]
    for weights in ("dense", "masked", "projected"):
        pruner.copy_of(weights)
    with pruner.dense():
        pass
    with pruner.masked():
        pass
    pruner.state_dict(), pruner.masks, repr(pruner), pruner.table()
    assert go_on(training, 2, 5) == go_on(other, 2, 5)
    assert same(state, before)


def test_a_state_can_be_loaded_twice_and_back_in_time() -> None:
    training = begin(CHOICES["SET"], "momentum")
    go_on(training, 0, 3)
    state = copy.deepcopy(saved(training))
    first = go_on(training, 3, 7)
    model, optimizer, pruner = training
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
    pruner.load_state_dict(state["pruner"])
    assert pruner.step == 3
    assert go_on(training, 3, 7) == first
