"""What is done for all layers at once equals what each layer does alone; counts are exact."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rarefy import Pruner
from rarefy.pruning.models import foreach_ops
from rarefy.pruning.models.pruned_parameter import PrunedParameter
from rarefy.pruning.models.trajectory import tally


@pytest.fixture
def all_at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The way of a GPU on a CPU; gives the sizes of the groups."""
    sizes: list[int] = []
    waiting = foreach_ops._waiting

    def counted(group: Any) -> list[Tensor]:
        sizes.append(len(group))
        return waiting(group)

    monkeypatch.setattr(foreach_ops, "_waiting", counted)
    monkeypatch.setattr(
        foreach_ops, "is_batched", lambda each: each.zeroes and each.waiting is not None
    )
    monkeypatch.setattr(
        PrunedParameter, "touched", lambda each: each.parameter._version != each._version
    )
    return sizes


def trained(update: str, granularity: str, by_data: bool = False) -> tuple[Pruner, list[Tensor]]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 4, 3, groups=2),
        nn.Flatten(),
        nn.Linear(4 * 36, 3),
    )
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    pruner = Pruner(model, optimizer, 0.3, update=update, granularity=granularity)
    for step in range(4):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(5, 2, 6, 6)), torch.arange(5) % 3).backward()
        if by_data and step == 2:
            model[4].weight.data[pruner.pruned["4.weight"].kept == 0] = 0.25
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if by_data else "error")
            optimizer.step()
    return pruner, [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("update", ["dense", "masked", "project"])
@pytest.mark.parametrize("granularity", ["filter", "neuron"])
@pytest.mark.parametrize("by_data", [False, True])
def test_all_at_once_is_bit_for_bit_what_each_does_alone(
    update: str, granularity: str, by_data: bool, request: pytest.FixtureRequest
) -> None:
    alone, expected = trained(update, granularity, by_data)
    sizes = request.getfixturevalue("all_at_once")
    pruner, found = trained(update, granularity, by_data)
    assert (max(sizes, default=0) > 1) == (update != "project")
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine, theirs)
    for name, pruned in pruner.pruned.items():
        assert torch.equal(pruned.kept, alone.pruned[name].kept)
        assert torch.equal(pruned.dense(), alone.pruned[name].dense())
    assert pruner.trajectory.frame().equals(alone.trajectory.frame())


def test_counts_are_those_of_the_masks() -> None:
    torch.manual_seed(3)
    shapes = [(5, 7), (4, 3, 2, 2), (1, 9)]
    old = [torch.rand(shape) < 0.3 for shape in shapes]
    new = [torch.rand(shape) < 0.3 for shape in shapes]
    new[0][2] = False
    rows = [
        tuple(each.flatten(1).float().sum(dim=1) for each in (before, now, before & now))
        for before, now in zip(old, new, strict=True)
    ]
    expected = [
        [
            int(now.sum()),
            int((now != before).sum()),
            int((now & ~before).sum()),
            int((~now.flatten(1).any(dim=1)).sum()),
        ]
        for before, now in zip(old, new, strict=True)
    ]
    assert tally(rows).tolist() == expected  # type: ignore[arg-type]
