"""Trap: weights of a pruned layer that are written by hand must be taken over or refused, and never
be lost in silence."""

from __future__ import annotations

import contextlib
import gc
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from small_networks import cnn, cnn_batch, dense_weights, mlp, mlp_batch, pruned, update
from torch import Tensor, nn

from rarefy import Pruner
from rarefy.core.errors import UsageError
from rarefy.pruning.schedules import constant, one_shot

Write = Callable[[nn.Linear], None]


def initialised(layer: nn.Linear) -> None:
    nn.init.uniform_(layer.weight, 1.0, 2.0)


def through_data(layer: nn.Linear) -> None:
    layer.weight.data.copy_(torch.rand(layer.weight.shape) + 1)


def another_data(layer: nn.Linear) -> None:
    layer.weight.data = torch.rand(layer.weight.shape) + 1


def in_place(layer: nn.Linear) -> None:
    with torch.no_grad():
        layer.weight.add_(1.0)


def reset(layer: nn.Linear) -> None:
    layer.reset_parameters()


def loaded(layer: nn.Linear) -> None:
    layer.load_state_dict(nn.Linear(layer.in_features, layer.out_features).state_dict())


def zeroed(layer: nn.Linear) -> None:
    nn.init.zeros_(layer.weight)


def one_entry(layer: nn.Linear) -> None:
    with torch.no_grad():
        layer.weight[0] = torch.arange(1.0, 7.0)


WAYS: list[Write] = [
    initialised, through_data, another_data, in_place, reset, loaded, zeroed,
]  # fmt: skip


@pytest.mark.parametrize("write", WAYS)
@pytest.mark.parametrize("rule", ["dense", "masked"])
@pytest.mark.parametrize("schedule", [None, one_shot(0)], ids=["every step", "once"])
def test_what_is_written_counts_and_the_next_update_says_so(
    write: Write, rule: str, schedule: Any
) -> None:
    """Learning rate 0: afterwards the dense weights are exactly what was written."""
    model = mlp()
    optimizer, pruner = pruned(model, lr=0.0, keep=0.5, update=rule, schedule=schedule)
    write(model[0])
    written = model[0].weight.detach().clone()
    message = (
        "0.weight written by somebody else since the last update (by hand? another optimizer?): "
        "these are the dense weights now, under the masks in force until they are next chosen; "
        "train with the pruner's optimizer, or detach()"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        update(model, optimizer, mlp_batch())
    assert torch.equal(dense_weights(pruner)["0.weight"], written)
    assert torch.equal(model[0].weight, written * pruner.masks["0.weight"])
    assert torch.equal(dense_weights(pruner)["2.weight"], mlp()[2].weight)
    update(model, optimizer, mlp_batch())  # said once


def test_a_row_written_by_hand_leaves_the_others_waiting() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, lr=0.0, keep=0.5)
    one_entry(model[0])
    with pytest.warns(UserWarning, match="0.weight written by somebody else"):
        update(model, optimizer, mlp_batch())
    found, start = dense_weights(pruner)["0.weight"], mlp()[0].weight
    assert found[0].tolist() == [1, 2, 3, 4, 5, 6] and torch.equal(found[1:], start[1:])


@pytest.mark.parametrize("write", WAYS)
@pytest.mark.parametrize(
    "choices", [{"update": "project"}, {"branches": True}], ids=["project", "branches"]
)
def test_where_nothing_waits_there_is_nothing_to_lose(
    write: Write, choices: dict[str, Any]
) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, lr=0.0, keep=0.5, schedule=constant(9), **choices)
    write(model[0])
    written = model[0].weight.detach().clone()
    outside = "update" in choices and bool((written * ~pruner.pruned["0.weight"].mask).any())
    expected = pytest.warns(UserWarning, match="^0.weight written by somebody else")
    with expected if outside else contextlib.nullcontext():
        update(model, optimizer, mlp_batch())
    assert torch.equal(model[0].weight, written)
    assert torch.equal(pruner.copy_of("masked")[0].weight, written * pruner.masks["0.weight"])


@pytest.mark.parametrize("rule", ["dense", "masked"])
def test_biases_of_pruned_neurons_and_masked_activations_too(rule: str) -> None:
    model = mlp()
    optimizer, pruner = pruned(
        model, lr=0.0, keep=0.5, granularity="neuron", layers="0", update=rule
    )
    nn.init.constant_(model[0].bias, 3.0)
    with pytest.warns(UserWarning, match="^bias of 0.weight written by somebody else"):
        update(model, optimizer, mlp_batch())
    assert dense_weights(pruner)["0.bias"].tolist() == [3.0] * 8
    assert model[0].bias.count_nonzero() == 4

    model = mlp()
    places = {"granularity": "neuron", "layers": "0", "activations": {"0": "1"}}
    optimizer, pruner = pruned(model, lr=0.0, keep=0.5, update=rule, **places)
    initialised(model[0])
    written = model[0].weight.detach().clone()
    expected = (
        pytest.warns(UserWarning, match="0.weight written by somebody else")
        if rule == "masked"
        else contextlib.nullcontext()
    )
    with expected:
        update(model, optimizer, mlp_batch())
    assert torch.equal(model[0].weight, written)


def test_looking_takes_over_what_was_written() -> None:
    said = "^0.weight written by somebody else"
    for look in (
        lambda p: p.copy_of("dense")[0].weight,
        lambda p: p.export("dense")[0].weight,
        lambda p: p.state_dict()["layers"]["0.weight"]["waiting"],
    ):
        model = mlp()
        _, pruner = pruned(model, keep=0.5)
        initialised(model[0])
        written = model[0].weight.detach().clone()
        with pytest.warns(UserWarning, match=said):
            assert torch.equal(look(pruner), written)
        assert torch.equal(model[0].weight, written * pruner.masks["0.weight"])
    model = mlp()
    _, pruner = pruned(model, keep=0.5)
    initialised(model[0])
    written = model[0].weight.detach().clone()
    pruner.detach()
    assert torch.equal(model[0].weight, written)


def test_an_ordinary_training_is_never_said_to_be_written_by_hand() -> None:
    """(Warnings are errors in all tests.) Not even one whose weights have become NaN."""
    for rule in ("dense", "masked", "project"):
        model = mlp()
        optimizer, pruner = pruned(model, keep=0.5, update=rule)
        update(model, optimizer, (mlp_batch()[0], mlp_batch()[1] * float("nan")))
        assert model[0].weight.isnan().any()
        for _ in range(2):
            update(model, optimizer, mlp_batch())
        with pruner.dense():
            pass
        assert pruner.step == 3


# ------------------------------------------------------------------------ replaced, and refused


def another_parameter(model: nn.Sequential) -> None:
    model[0].weight = nn.Parameter(torch.ones(8, 6))


def another_layer(model: nn.Sequential) -> None:
    model[0] = nn.Linear(6, 8)


def assigned(model: nn.Sequential) -> None:
    model.load_state_dict(mlp().state_dict(), assign=True)


def parametrized(model: nn.Sequential) -> None:
    nn.utils.parametrizations.weight_norm(model[0])


def removed(model: nn.Sequential) -> None:
    del model[0]


@pytest.mark.parametrize(
    "change", [another_parameter, another_layer, assigned, parametrized, removed]
)
def test_a_replaced_parameter_is_an_error_at_the_next_update(
    change: Callable[[nn.Sequential], None],
) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    change(model)
    with pytest.raises(UsageError) as error:
        optimizer.step()
    assert str(error.value) == (
        "model: 0.weight was replaced; detach() before changing a pruned layer"
    )
    assert pruner.step == 0


@pytest.mark.parametrize("context", ["dense", "masked"])
def test_what_is_written_for_an_evaluation_is_refused_and_undone(context: str) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, lr=0.0, keep=0.5)
    before = model[0].weight.detach().clone()
    with pytest.raises(UsageError) as error, getattr(pruner, context)():
        initialised(model[0])
    assert str(error.value) == "pruner: 0.weight written inside dense() or masked() would be lost"
    assert torch.equal(model[0].weight, before) and not pruner.evaluating
    update(model, optimizer, mlp_batch())
    assert torch.equal(dense_weights(pruner)["0.weight"], mlp()[0].weight)


def test_a_pruner_that_nobody_keeps_stays_in_force() -> None:
    """``Pruner(model, optimizer)`` without a variable must not prune once and never again."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Pruner(model, optimizer, keep=0.5)
    gc.collect()
    for step in range(3):
        update(model, optimizer, mlp_batch(step))
        assert (model[0].weight != 0).sum(dim=1).tolist() == [3] * 8


def test_after_detaching_a_plain_model_is_left() -> None:
    """Whoever detaches may drop the pruner, and write what they like."""
    for rule in ("dense", "masked"):
        model = mlp()
        optimizer, pruner = pruned(model, keep=0.5, update=rule)
        pruner.detach()
        del pruner
        gc.collect()
        assert all(
            torch.equal(a, b) for a, b in zip(model.parameters(), mlp().parameters(), strict=True)
        )
        initialised(model[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            update(model, optimizer, mlp_batch())
        assert (model[0].weight.grad != 0).any(dim=1).sum() > 0
        assert (model[0].weight != 0).all()


def test_detaching_leaves_the_masks_of_another_pruner_alone() -> None:
    """Two pruners of one model, on different layers, both with masked activations."""
    model = cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, second = (
        Pruner(
            model, optimizer, 0.5, granularity="neuron", layers=layer, activations={layer: place}
        )
        for layer, place in (("0", "2"), ("3", "4"))
    )

    def silent(layers: int) -> Tensor:
        return model[:layers](cnn_batch()[0]).transpose(0, 1).flatten(1).abs().sum(dim=1) == 0

    assert silent(3).sum() == 2
    assert silent(5).sum() == 2
    first.detach()
    assert silent(3).sum() == 0
    assert silent(5).sum() == 2
    second.detach()
    assert silent(5).sum() == 0


def test_zeros_written_by_hand_are_weights_too() -> None:
    """A row set to zero, a sparse matrix: old weights must not come back in the zeros' places."""
    model = mlp()
    optimizer, pruner = pruned(model, lr=0.0, keep=0.5)
    with torch.no_grad():
        model[0].weight[0] = 0
    with pytest.warns(UserWarning, match="0.weight written by somebody else"):
        update(model, optimizer, mlp_batch())
    assert (dense_weights(pruner)["0.weight"][0] == 0).all()
    assert (dense_weights(pruner)["0.weight"][1:] != 0).all(), "other rows wait as they did"
    nn.init.eye_(model[0].weight)
    with pytest.warns(UserWarning, match="0.weight written by somebody else"):
        update(model, optimizer, mlp_batch())
    assert torch.equal(dense_weights(pruner)["0.weight"], torch.eye(8, 6))


@pytest.mark.parametrize("rule", ["dense", "masked"])
def test_a_sparse_checkpoint_gets_its_own_masks_at_once(rule: str) -> None:
    """Without the pruner's state: masks of other weights would take most of it away."""
    sparse = mlp()
    with torch.no_grad():
        for layer in (sparse[0], sparse[2]):
            layer.weight.copy_(torch.randn_like(layer.weight))
            chosen = layer.weight.abs().topk(2, dim=1).indices
            layer.weight.mul_(torch.zeros_like(layer.weight).scatter(1, chosen, 1.0))
    model = mlp()
    optimizer, pruner = pruned(model, lr=0.0, keep=2, update=rule, schedule=one_shot(0))
    model.load_state_dict(sparse.state_dict())
    assert torch.equal(model[0].weight, sparse[0].weight)
    update(model, optimizer, mlp_batch())
    assert torch.equal(model[0].weight, sparse[0].weight)
    assert torch.equal(dense_weights(pruner)["0.weight"], sparse[0].weight)
