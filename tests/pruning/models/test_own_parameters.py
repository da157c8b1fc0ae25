"""A masked branch that has some parameters for itself, beside those it shares with the model."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.pruning.models.pruner import Pruner

NORM = ["norm.weight", "norm.bias"]
X = torch.randn(8, 2, 5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.conv(x)).relu().mean(dim=(2, 3)))


def made(**settings: Any) -> tuple[Net, torch.optim.Optimizer, Pruner]:
    model = Net().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    chosen = {"keep": 0.5, "branches": True, "layers": "conv", **settings}
    return model, optimizer, Pruner(model, optimizer, **chosen)


def with_own(**settings: Any) -> tuple[Net, torch.optim.Optimizer, Pruner, list[nn.Parameter]]:
    model, optimizer, pruner = made(**settings)
    own = pruner.masked_branch.give_own(NORM)
    optimizer.add_param_group({"params": own})
    return model, optimizer, pruner, own


def train(model: nn.Module, optimizer: torch.optim.Optimizer, pruner: Pruner, updates: int) -> None:
    for _ in range(updates):
        optimizer.zero_grad()
        (model(X).square().mean() + (pruner.masked_branch(X) - 1).square().mean()).backward()
        optimizer.step()


def test_they_begin_as_copies_and_are_told_to_an_optimiser() -> None:
    model, optimizer, pruner, own = with_own()
    assert [one.shape for one in own] == [(4,), (4,)]
    assert torch.equal(own[0], model.norm.weight) and own[0] is not model.norm.weight
    assert list(pruner.masked_branch.own) == NORM
    assert "norm.weight" in model.state_dict() and len(list(model.parameters())) == 6
    before = pruner.masked_branch(X)
    with torch.no_grad():
        model.norm.weight.fill_(7.0)
        assert torch.equal(pruner.masked_branch(X), before)  # no longer the model's
        own[0].fill_(7.0)
        assert not torch.equal(pruner.masked_branch(X), before)


@pytest.mark.parametrize("masked_gradients", [False, True])
def test_gradients_are_those_of_two_networks(masked_gradients: bool) -> None:
    """Two plain networks, whose shared weights' gradients are then added up."""
    model, optimizer, pruner, own = with_own(masked_gradients=masked_gradients)
    train(model, optimizer, pruner, 3)  # so that the branches differ
    dense, masked = pruner.copy_of("dense"), pruner.copy_of("masked")
    optimizer.zero_grad()
    (model(X).square().mean() + (pruner.masked_branch(X) - 1).square().mean()).backward()
    (dense(X).square().mean() + (masked(X) - 1).square().mean()).backward()
    first, second = dict(dense.named_parameters()), dict(masked.named_parameters())
    kept = pruner.masks["conv.weight"]
    for name, parameter in model.named_parameters():
        wanted, other = first[name].grad, second[name].grad
        if name in NORM:
            mine = pruner.masked_branch.own[name].grad
            torch.testing.assert_close(mine, other, atol=1e-12, rtol=0)
        elif name == "conv.weight" and masked_gradients:
            wanted = wanted + other * kept
        else:
            wanted = wanted + other
        torch.testing.assert_close(parameter.grad, wanted, atol=1e-12, rtol=0, msg=name)
    assert bool(second["conv.weight"].grad[~kept].any())  # else the two rules were one


def test_copies_have_them_where_they_are_masked() -> None:
    model, optimizer, pruner, own = with_own()
    train(model, optimizer, pruner, 3)
    assert not torch.equal(own[0], model.norm.weight)
    for which in ("masked", "projected"):
        plain = pruner.copy_of(which)
        assert torch.equal(plain.norm.weight, own[0]) and torch.equal(plain.norm.bias, own[1])
    assert torch.equal(pruner.copy_of("masked")(X), pruner.masked_branch(X))
    dense = pruner.copy_of("dense")
    assert torch.equal(dense.norm.weight, model.norm.weight)
    # a copy is a copy
    pruner.copy_of("masked").norm.weight.data.fill_(9.0)
    assert not bool((own[0] == 9).any())


def test_the_model_has_them_for_a_while() -> None:
    model, optimizer, pruner, own = with_own()
    train(model, optimizer, pruner, 3)
    before = copy.deepcopy(model.state_dict())
    mine = own[0].detach().clone()
    model.eval()
    with pruner.masked() as inside, torch.no_grad():
        assert inside is model and torch.equal(model.norm.weight, mine)
        found = model(X)
    assert torch.equal(found, pruner.masked_branch(X))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(own[0], mine)
    with pruner.dense():
        assert torch.equal(model.norm.weight, before["norm.weight"])


def test_they_are_saved_and_loaded() -> None:
    model, optimizer, pruner, own = with_own()
    train(model, optimizer, pruner, 2)
    states = copy.deepcopy((model.state_dict(), optimizer.state_dict(), pruner.state_dict()))
    assert set(NORM) < set(states[2]["branch"])
    train(model, optimizer, pruner, 2)
    other, its_optimizer, its_pruner, its_own = with_own()
    other.load_state_dict(states[0])
    its_optimizer.load_state_dict(states[1])
    its_pruner.load_state_dict(states[2])
    train(other, its_optimizer, its_pruner, 2)
    assert torch.equal(its_own[0], own[0]) and torch.equal(its_own[1], own[1])
    assert torch.equal(its_pruner.masked_branch(X), pruner.masked_branch(X))


def test_a_state_with_others_is_refused() -> None:
    _, _, without = made()
    _, _, having, _ = with_own()
    with pytest.raises(UsageError, match="of another branch: only the state has norm.weight"):
        without.load_state_dict(having.state_dict())
    with pytest.raises(UsageError, match="of another branch: only the branch has norm.weight"):
        having.load_state_dict(without.state_dict())


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["conv.weight"], "names='conv.weight': is pruned: the branch cannot have its own"),
        (["norm.scale"], "names='norm.scale': is no parameter of the model"),
        (["norm.running_mean"], "names='norm.running_mean': is no parameter of the model"),
        (["head.bias", "head.bias"], "names='head.bias': the branch has its own already"),
        (["norm.bias"], "names='norm.bias': the branch has its own already"),
    ],
)
def test_what_cannot_be_its_own(names: list[str], said: str) -> None:
    _, _, pruner = made()
    branch = pruner.masked_branch
    branch.give_own(["norm.bias"])
    with pytest.raises(UsageError) as error:
        branch.give_own(["head.weight", *names])
    assert str(error.value).startswith(said)
    assert list(branch.own) == ["norm.bias"]  # all or nothing


def test_further_ones_can_be_given_later() -> None:
    _, optimizer, pruner = made()
    first = pruner.masked_branch.give_own(["norm.weight"])
    optimizer.add_param_group({"params": first})
    second = pruner.masked_branch.give_own(["norm.bias"])
    assert len(second) == 1 and second[0] is pruner.masked_branch.own["norm.bias"]
    optimizer.add_param_group({"params": second})  # (complains about one that it knows)
    assert pruner.masked_branch.give_own([]) == []


def test_without_a_second_branch_there_is_nobody_to_give_them_to() -> None:
    _, _, pruner = made(branches=False)
    with pytest.raises(UsageError, match=r"masked_branch needs Pruner\(..., branches=True\)"):
        pruner.masked_branch.give_own(NORM)


def test_they_go_where_the_model_goes() -> None:
    model, optimizer, pruner, own = with_own()
    model.float()
    assert pruner.masked_branch(X.float()).dtype == torch.float32
    assert own[0].dtype == torch.float32
    assert pruner.masked_branch.own["norm.weight"] is own[0]  # the one that the optimiser knows
    pruner.masked_branch(X.float()).square().mean().backward()
    before = own[0].detach().clone()
    optimizer.step()
    assert not torch.equal(own[0], before)


def test_what_is_frozen_stays_frozen() -> None:
    model, _, pruner = made()
    model.norm.weight.requires_grad_(False)
    weight, bias = pruner.masked_branch.give_own(NORM)
    assert not weight.requires_grad and bias.requires_grad


def test_copied_with_model_and_optimiser_they_train_on_alike() -> None:
    model, optimizer, pruner, own = with_own()
    train(model, optimizer, pruner, 2)
    other, its_optimizer, its_pruner = copy.deepcopy((model, optimizer, pruner))
    train(model, optimizer, pruner, 2)
    its_own = its_pruner.masked_branch.own["norm.weight"]
    assert its_own is its_optimizer.param_groups[1]["params"][0]
    assert not torch.equal(its_own, own[0])
    train(other, its_optimizer, its_pruner, 2)
    assert torch.equal(its_own, own[0])
