"""The states of other pruners: refused in one line that says what differs, and nothing changed."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest
from small_networks import cnn, cnn_batch, mlp, mlp_batch, pruned, update
from torch import nn

from rarefy.core.errors import UsageError
from rarefy.pruning.regrowth import RigL
from rarefy.pruning.schedules import constant, periodic

RIGL = RigL(10)


def other_state(**choices: Any) -> dict[str, Any]:
    model = mlp()
    optimizer, pruner = pruned(model, **{"keep": 0.5, **choices})
    update(model, optimizer, mlp_batch())
    return pruner.state_dict()


def wider() -> dict[str, Any]:
    model = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 3))
    return pruned(model, keep=0.5)[1].state_dict()


def convolutional() -> dict[str, Any]:
    model = cnn()
    optimizer, pruner = pruned(model, keep=0.5)
    update(model, optimizer, cnn_batch())
    return pruner.state_dict()


SETTINGS = [
    ({"keep": 0.25}, "keep=0.25, not 0.5"),
    ({"score": "random"}, "score='random', not 'magnitude'"),
    ({"score": lambda name, weight, gradient: weight.abs()}, "score='a function', not 'magnitude'"),
    ({"granularity": "layer"}, "granularity='layer', not 'filter'"),
    ({"update": "masked"}, "update='masked', not 'dense'"),
    ({"distribution": {"0": 0.3}}, "distribution={'0': 0.3}, not 'uniform'"),
    ({"branches": True}, "branches=True, not False"),
    ({"schedule": periodic(3)}, f"schedule={str(constant(3))!r}, not {str(constant())!r}"),
]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: {}, "not a state of a Pruner"),
        (lambda: {**other_state(), "format": 2}, "format 2, known is 1"),
        (lambda: other_state(layers="0"), "of another model: only the model has 2.weight"),
        (wider, "of another model: 0.weight is (9, 6), not (8, 6)"),
        (convolutional, "of another model: 0.weight is (4, 2, 3, 3), not (8, 6)"),
        *[(partial(other_state, **each), f"made with {words}") for each, words in SETTINGS],
    ],
)
def test_the_state_of_another_pruner_is_refused_and_changes_nothing(
    state: Any, message: str
) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    before = copy.deepcopy((model.state_dict(), pruner.state_dict()))
    with pytest.raises(UsageError) as error:
        pruner.load_state_dict(state())
    assert str(error.value) == f"pruner state: {message}"
    after = (model.state_dict(), pruner.state_dict())
    assert str(after) == str(before)
    update(model, optimizer, mlp_batch())


def test_a_state_with_more_layers_and_one_with_regrowth_are_refused() -> None:
    model = mlp()
    _, pruner = pruned(model, keep=0.5, layers="0")
    with pytest.raises(UsageError) as error:
        pruner.load_state_dict(other_state())
    assert str(error.value) == "pruner state: of another model: only the state has 2.weight"
    model = mlp()
    _, pruner = pruned(model, keep=0.5, update="masked")
    with pytest.raises(UsageError) as error:
        pruner.load_state_dict(other_state(update="masked", regrow=RIGL))
    assert str(error.value) == (
        "pruner state: made with regrow=\"Regrowth(kind='rigl', until=10, share=0.3)\", not None"
    )
