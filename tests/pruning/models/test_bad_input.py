"""A Pruner that cannot be made: one line that names the layer or argument, and nothing touched."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_networks import mlp, mlp_batch, pruned, update
from torch import nn

from rarefy import Pruner
from rarefy.core.errors import UsageError
from rarefy.pruning.regrowth import SET, RigL
from rarefy.pruning.schedules import gradual

RIGL = RigL(10)
NEURONS = {"0": "1"}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"keep": 0.0}, "keep=0.0: a share must lie in (0, 1]"),
        ({"keep": 1.01}, "keep=1.01: a share must lie in (0, 1]"),
        ({"keep": -1}, "keep=-1: a count must be at least 1"),
        ({"keep": "half"}, "keep='half': must be a share in (0, 1] or a whole count"),
        ({"keep": 7}, "keep=7: 0.weight has filters of 6 weights"),
        ({"keep": 25, "granularity": "layer"}, "keep=25: 2.weight has 24 weights"),
        ({"keep": 4, "granularity": "neuron"}, "keep=4: 2.weight has 3 filters"),
        ({"keep": 73, "granularity": "global"}, "keep=73: all layers together have 72 weights"),
        (
            {"granularity": "2:4"},
            "granularity 2:4: 0.weight has 6 inputs per filter, not a multiple of 4; "
            "leave it out with layers=",
        ),
        (
            {"granularity": "channel"},
            "granularity='channel': must be one of filter, layer, global, neuron, or N:M such as "
            "'2:4'",
        ),
        ({"update": "frozen"}, "update='frozen': must be one of dense, masked, project"),
        ({"score": "size"}, "unknown score 'size' (known: magnitude, norm, random, saliency)"),
        ({"moments": "drop"}, "moments='drop': must be one of keep, reset"),
        ({"layers": "head"}, "layers='head': matches no module with a weight; there are 0, 2"),
        (
            {"distribution": "even"},
            "distribution='even': must be 'uniform', 'erk' or {pattern: keep}",
        ),
        (
            {"distribution": {"9": 0.5}},
            "distribution: pattern '9' matches none of 0.weight, 2.weight",
        ),
        (
            {"distribution": "erk", "granularity": "global"},
            "distribution='erk': all layers compete: only 'uniform'",
        ),
        (
            {"distribution": {"0": 0.5}, "granularity": "2:4"},
            "distribution={'0': 0.5}: N:M is the same everywhere: only 'uniform'",
        ),
        ({"freeze_at": -1}, "freeze_at=-1: must not be before begin=0"),
        (
            {"freeze_at": 2, "schedule": gradual(0, 5)},
            "freeze_at=2: a gradual schedule ends at 5: freeze then",
        ),
        ({"regrow": RIGL}, "regrow='rigl': needs update='masked'"),
        (
            {"regrow": SET(5), "update": "masked", "granularity": "neuron"},
            "regrow='set': needs granularity filter, layer or global",
        ),
        (
            {"regrow": RIGL, "update": "masked", "schedule": gradual(0, 5)},
            "regrow='rigl': keeps a fixed number: no gradual schedule",
        ),
        ({"activations": NEURONS}, "activations={'0': '1'}: needs granularity='neuron'"),
        (
            {"activations": NEURONS, "granularity": "neuron", "update": "project"},
            "activations={'0': '1'}: goes with update dense or masked",
        ),
        (
            {"activations": NEURONS, "granularity": "neuron", "branches": True},
            "activations={'0': '1'}: goes with update dense or masked",
        ),
        (
            {"activations": NEURONS, "granularity": "neuron"},
            "activations={'0': '1'}: says nothing of layer '2'",
        ),
        (
            {"activations": {"0": "act"}, "granularity": "neuron", "layers": "0"},
            "activations='act': the model has no module of this name",
        ),
        (
            {"activations": {"0": "1", "2": "1"}, "granularity": "neuron"},
            "activations: 1 stands behind several layers; give each its own",
        ),
        (
            {"branches": True, "update": "masked"},
            "update='masked': two branches share dense weights: must be 'dense'",
        ),
        ({"masked_gradients": True}, "masked_gradients=True: belongs to branches=True"),
    ],
    ids=str,
)
def test_choices_that_are_impossible_touch_nothing(choices: dict[str, Any], message: str) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(UsageError) as error:
        Pruner(model, optimizer, **choices)
    assert str(error.value) == message
    for a, b in zip(model.parameters(), mlp().parameters(), strict=True):
        assert torch.equal(a, b)
    assert not any(module._forward_hooks for module in model.modules())
    assert not any(parameter._backward_hooks for parameter in model.parameters())
    # and another pruner may still be made, and works alone
    pruner = Pruner(model, optimizer, keep=0.5)
    update(model, optimizer, mlp_batch())
    assert pruner.step == 1


def test_a_score_function_that_gives_no_scores_names_the_layer() -> None:
    """And of the pruner that was half made nothing stays behind."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for choices in ({"update": "masked"}, {"granularity": "neuron"}):
        with pytest.raises(UsageError) as error:
            Pruner(model, optimizer, score=lambda name, weight, gradient: weight[0], **choices)
        assert str(error.value) == "score of 0.weight: must be a tensor of shape (8, 6), not (6,)"
    for a, b in zip(model.parameters(), mlp().parameters(), strict=True):
        assert torch.equal(a, b) and not a._backward_hooks
    update(model, optimizer, mlp_batch())
    assert Pruner(model, optimizer).step == 0


# ----------------------------------------------------------------------- models and optimisers


def test_a_model_without_prunable_layers() -> None:
    model = nn.Sequential(nn.LayerNorm(4), nn.ReLU())
    with pytest.raises(UsageError) as error:
        pruned(model)
    assert str(error.value) == (
        "model: Sequential has no layers that can be pruned (weights of 2 dimensions or more)"
    )


def test_a_weight_that_the_optimiser_does_not_train_is_named() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    with pytest.raises(UsageError) as error:
        Pruner(model, optimizer)
    assert str(error.value) == "optimizer: does not train 0.weight; leave it out with layers="
    assert Pruner(model, optimizer, layers="2").step == 0


def test_a_second_pruner_of_the_same_weight_is_refused_and_one_of_other_layers_is_not() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = Pruner(model, optimizer, keep=0.5, layers="0")
    with pytest.raises(UsageError) as error:
        Pruner(model, optimizer, keep=0.5)
    assert str(error.value) == ("model: 0.weight has a pruner already; detach() that one first")
    second = Pruner(model, optimizer, keep=0.25, layers="2", update="project")
    update(model, optimizer, mlp_batch())
    assert first.step == second.step == 1
    assert (model[0].weight != 0).sum() == 24 and (model[2].weight != 0).sum() == 6
    first.detach()
    assert Pruner(model, optimizer, layers="0").step == 0
