"""Corners that a reader of the code found: each was wrong once."""

from __future__ import annotations

import copy
import gc
from pathlib import Path

import pytest
import torch
from small_networks import mlp, mlp_batch, pruned, update
from torch import nn

from rarefy import Pruner
from rarefy.core.errors import RunError, UsageError
from rarefy.pruning.finishing.removal import remove_zero_filters
from rarefy.pruning.regrowth import RigL
from rarefy.pruning.schedules import constant, gradual, one_shot


def share(model: nn.Module) -> float:
    weights = torch.cat([each.weight.flatten() for each in (model[0], model[2])])
    return float((weights != 0).float().mean())


@pytest.mark.parametrize("schedule", [one_shot(0), gradual(0, 3), constant().frozen_at(2)])
def test_a_support_that_stays_is_projected_on_for_good(schedule: object) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5, update="project", schedule=schedule)
    for _ in range(6):
        update(model, optimizer, mlp_batch())
    assert share(model) == pytest.approx(pruner.keep)


def test_a_failing_score_leaves_the_masks_in_force() -> None:
    calls = []

    def score(name: str, weight: torch.Tensor, gradient: torch.Tensor | None) -> torch.Tensor:
        calls.append(name)
        if len(calls) > 2:
            raise ArithmeticError("no score today")
        return weight.abs()

    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5, score=score)
    with pytest.raises(ArithmeticError):
        update(model, optimizer, mlp_batch())
    assert share(model) == pytest.approx(pruner.keep)


def test_what_is_copied_in_inference_mode_can_be_trained() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    model.double()
    with torch.inference_mode():
        plain = pruner.copy_of("dense")
    x, y = mlp_batch()
    update(model, optimizer, (x.double(), y))
    plain(x.double()).sum().backward()


def test_the_masked_branch_follows_the_type_of_the_model() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6))
    pruner = Pruner(model, torch.optim.SGD(model.parameters(), 0.1), branches=True)
    model.double()
    assert pruner.masked_branch(torch.randn(5, 4, dtype=torch.float64)).dtype == torch.float64


def test_a_shared_activation_is_refused() -> None:
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(4, 6), relu, nn.Linear(6, 6), relu)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(UsageError, match="activations: 1 stands behind several layers"):
        Pruner(model, optimizer, granularity="neuron", layers="0", activations={"0": "1"})


def test_silenced_neurons_can_be_traced() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    pruner = Pruner(model, optimizer, granularity="neuron", layers="0", activations={"0": "1"})
    exported = pruner.export()
    x = torch.randn(3, 4)
    smaller, _ = remove_zero_filters(exported, x)
    torch.testing.assert_close(smaller(x), exported(x))


def test_wrapped_models_and_optimisers_are_unwrapped() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    state = pruner.state_dict()
    pruner.detach()
    compiled = torch.compile(model, backend="eager")
    again = Pruner(compiled, optimizer, keep=0.5)
    again.load_state_dict(state)
    assert type(again.export()) is type(model)


def test_a_layer_without_gradients_keeps_what_it_has_under_rigl() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    optimizer, pruner = pruned(model, keep=0.5, update="masked", regrow=RigL(20))
    before = {name: mask.clone() for name, mask in pruner.masks.items()}
    for _ in range(5):
        update(model, optimizer, mlp_batch())
    assert torch.equal(pruner.masks["0.weight"], before["0.weight"])
    assert not torch.equal(pruner.masks["2.weight"], before["2.weight"])


def test_regrowth_with_one_choice_of_masks_is_refused() -> None:
    model = mlp()
    with pytest.raises(UsageError, match="moves nothing: masks are chosen only once"):
        pruned(model, update="masked", regrow=RigL(20), schedule=one_shot(0))


def test_a_projected_copy_keeps_a_frozen_support() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5, schedule=one_shot(0))
    for _ in range(3):
        update(model, optimizer, mlp_batch())
    projected = pruner.copy_of("projected")
    assert torch.equal(projected[0].weight != 0, pruner.masks["0.weight"])


def test_nothing_is_saved_while_other_weights_are_in_the_model() -> None:
    pruner = pruned(mlp(), keep=0.5, update="project")[1]
    with pruner.masked():
        with pytest.raises(UsageError, match="cannot be saved inside dense"):
            pruner.state_dict()
        with pytest.raises(UsageError, match="cannot be copied inside dense"):
            pruner.copy_of("dense")


def test_detached_is_detached() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    state = pruner.state_dict()
    pruner.detach()
    with torch.no_grad():
        model[0].weight.zero_()
    pruner.detach()
    assert not model[0].weight.any()
    with pytest.raises(UsageError, match="cannot be loaded, it was detached after 0 updates"):
        pruner.load_state_dict(state)


def test_a_pruner_that_nobody_has_any_more_is_not_in_the_way() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    gc.disable()
    try:
        del optimizer, pruner
        Pruner(model, torch.optim.SGD(model.parameters(), 0.1), keep=0.5)
    finally:
        gc.enable()


def test_moments_of_biases_are_reset_too() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9, momentum=0.9)
    update(model, optimizer, mlp_batch())
    pruner = Pruner(
        model, optimizer, keep=0.5, granularity="neuron", layers="0", moments="reset",
        schedule=constant(1),
    )  # fmt: skip
    with torch.no_grad():
        pruner.pruned["0.weight"].waiting.mul_(
            torch.where(pruner.pruned["0.weight"].neurons(), 1e-3, 1e3)[:, None]
        )
        pruner.pruned["0.weight"].apply_mask()
    update(model, optimizer, mlp_batch())
    off = ~pruner.pruned["0.weight"].neurons()
    assert (optimizer.state[model[0].bias]["momentum_buffer"][off] == 0).all()


def test_a_filters_norm_as_score() -> None:
    """The weights of the largest filters, one filter after the other."""
    model = nn.Linear(3, 4, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 1, 1], [0, 0, 9], [2, 2, 2], [1, 0, 0]]))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    pruner = Pruner(model, optimizer, keep=6, score="norm", granularity="layer")
    assert pruner.masks["weight"].all(dim=1).tolist() == [False, True, True, False]


def test_table_and_plot_say_what_happened(tmp_path: object) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    with pytest.raises(UsageError, match="nothing to plot"):
        pruned(mlp(), schedule=one_shot(5))[1].plot()
    for _ in range(4):
        update(model, optimizer, mlp_batch())
    table = pruner.table()
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert cells[0] == ["0.weight", "2.weight", "all"]
    assert cells[3][0] == "0.500"
    path = f"{tmp_path}/pruning.png"
    figure = pruner.plot(path)
    assert [axis.get_title() for axis in figure.axes][0] == "share kept"
    with open(path, "rb") as file:
        assert file.read(4) == b"\x89PNG"
    pruner.plot(path)
    Path(path).write_text("mine")
    with pytest.raises(RunError, match="is there, and not as rarefy wrote it"):
        pruner.plot(path)
    assert Path(path).read_text() == "mine"


def test_copies_of_a_model_do_not_tell_its_pruner() -> None:
    model = mlp()
    pruner = pruned(model, keep=0.5)[1]
    masks = {name: mask.clone() for name, mask in pruner.masks.items()}
    other = copy.deepcopy(model)
    other.load_state_dict(mlp().state_dict())
    assert all(torch.equal(pruner.masks[name], mask) for name, mask in masks.items())


@pytest.mark.parametrize("rule", ["dense", "masked", "project"])
def test_sparse_gradients_of_an_embedding(rule: str) -> None:
    model = nn.Sequential(nn.Embedding(10, 6, sparse=True), nn.Linear(6, 2))
    optimizer, pruner = pruned(model, keep=0.5, layers=nn.Embedding, update=rule)
    update(model, optimizer, (torch.tensor([1, 2]), torch.zeros(2, 2)))
    assert torch.equal(model[0].weight != 0, pruner.masks["0.weight"])
