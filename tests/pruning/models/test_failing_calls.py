"""Calls of a Pruner that are refused or fail: one line, and the weights and masks are as before."""

from __future__ import annotations

import pytest
import torch
from small_networks import mlp, mlp_batch, pruned, update

from rarefy import Pruner
from rarefy.core.errors import UsageError


def test_stepping_after_an_export_is_an_error_until_the_pruner_is_detached() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    update(model, optimizer, mlp_batch())
    plain = pruner.export()
    before = model[0].weight.detach().clone()
    with pytest.raises(UsageError) as error:
        optimizer.step()
    assert str(error.value) == "pruner: exported after 1 updates; detach() it to train on"
    assert torch.equal(model[0].weight, before)
    # the exported one is a plain model, and may be trained
    update(plain, torch.optim.SGD(plain.parameters(), lr=0.1), mlp_batch())
    # pruning the old one on without saying so is refused; after detaching it is not
    with pytest.raises(UsageError, match="^model: 0.weight has a pruner already; detach"):
        Pruner(model, optimizer)
    pruner.detach()
    again = Pruner(model, optimizer, keep=0.25)
    update(model, optimizer, mlp_batch())
    assert again.step == 1 and pruner.step == 1


def test_unknown_weights_to_export_are_named_and_do_not_end_anything() -> None:
    model = mlp()
    optimizer, pruner = pruned(model)
    for call in (pruner.export, pruner.copy_of):
        with pytest.raises(UsageError) as error:
            call("sparse")
        assert str(error.value) == "weights='sparse': must be one of dense, masked, projected"
    update(model, optimizer, mlp_batch())


@pytest.mark.parametrize("outer", ["dense", "masked"])
@pytest.mark.parametrize("inner", ["dense", "masked"])
def test_nested_evaluations_are_refused_and_the_outer_one_ends_well(outer: str, inner: str) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    before = model[0].weight.detach().clone()
    with getattr(pruner, outer)():
        with pytest.raises(UsageError) as error, getattr(pruner, inner)():
            pass
        assert str(error.value) == "pruner: dense() and masked() cannot be nested"
    assert torch.equal(model[0].weight, before)
    update(model, optimizer, mlp_batch())


@pytest.mark.parametrize("context", ["dense", "masked"])
def test_a_step_inside_an_evaluation_is_refused(context: str) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    before = model[0].weight.detach().clone()
    with getattr(pruner, context)():
        model(mlp_batch()[0]).sum().backward()
        with pytest.raises(UsageError) as error:
            optimizer.step()
        assert str(error.value) == (
            "pruner: optimizer.step() inside dense() or masked() would be lost"
        )
    assert torch.equal(model[0].weight, before) and pruner.step == 0
    update(model, optimizer, mlp_batch())
    assert pruner.step == 1


def test_an_evaluation_that_fails_leaves_the_masks_in_force() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    before = model[0].weight.detach().clone()
    with pytest.raises(ZeroDivisionError), pruner.dense():
        raise ZeroDivisionError
    assert torch.equal(model[0].weight, before)
    update(model, optimizer, mlp_batch())


def test_a_closure_that_fails_leaves_the_masks_in_force() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)

    def closure() -> torch.Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        optimizer.step(closure)
    assert (model[0].weight != 0).sum() == 24 and pruner.step == 0
    update(model, optimizer, mlp_batch())
    assert (model[0].weight != 0).sum() == 24 and pruner.step == 1


def test_the_masked_branch_is_there_only_if_asked_for() -> None:
    model = mlp()
    _, pruner = pruned(model)
    with pytest.raises(UsageError) as error:
        _ = pruner.masked_branch
    assert str(error.value) == "pruner: masked_branch needs Pruner(..., branches=True)"
