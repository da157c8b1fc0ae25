"""Neurons that are left out: whose incoming and outgoing weights still get a gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from rarefy import Pruner
from rarefy.pruning.schedules import constant


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
    pruned = ~pruner.pruned["0.weight"].neurons()
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


def test_a_projected_copy_silences_the_neurons_that_would_be_left_out_now() -> None:
    """By hand: neurons (1, 1) and (2, 2); the second acts at first. Then the first one grows to
    (11, 11): masked it is still silent, projected it acts and the second does not."""
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 1.0], [2.0, 2.0]]))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    pruner = Pruner(
        model,
        optimizer,
        keep=1,
        granularity="neuron",
        activations={"0": "1"},
        schedule=constant(every=9),
    )
    model[0].weight.grad = torch.tensor([[-10.0, -10.0], [0.0, 0.0]])
    optimizer.step()
    x = torch.ones(1, 2)
    assert model(x).tolist() == [[0, 4]]
    assert pruner.copy_of("masked")(x).tolist() == [[0, 4]]
    assert pruner.copy_of("projected")(x).tolist() == [[22, 0]]
    assert pruner.copy_of("dense")(x).tolist() == [[22, 4]]
    with pruner.dense():
        assert model(x).tolist() == [[22, 4]]
    assert model(x).tolist() == [[0, 4]]  # looking changed nothing


def test_in_the_masked_branch_a_neuron_is_off_with_its_bias() -> None:
    """A bias that stays would leave a neuron on that counts as pruned."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    nn.init.constant_(model[0].bias, 5.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pruner = Pruner(model, optimizer, keep=0.5, granularity="neuron", branches=True)
    off = ~pruner.pruned["0.weight"].neurons()
    x = torch.rand(3, 3)
    assert (pruner.masked_branch(x)[:, off] == 0).all() and (model(x) != 0).all()
    assert torch.equal(pruner.copy_of("masked")(x), pruner.masked_branch(x))
    masked = pruner.copy_of("masked")(x)
    with pruner.masked():
        assert torch.equal(model(x), masked)
