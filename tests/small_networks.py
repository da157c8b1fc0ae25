"""Small PyTorch models for tests of the Pruner, each the same at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rarefy import Pruner


def mlp(bias: bool = True) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8, bias=bias), nn.ReLU(), nn.Linear(8, 3, bias=bias))


def mlp_batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(16, 6, generator=generator), torch.randn(16, 3, generator=generator)


def cnn() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 4, 3, groups=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


def cnn_batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(8, 2, 6, 6, generator=generator), torch.randn(8, 3, generator=generator)


def pruned(model: nn.Module, lr: float = 0.1, **choices: Any) -> tuple[torch.optim.SGD, Pruner]:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return optimizer, Pruner(model, optimizer, **choices)


def update(
    model: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    batch: tuple[Tensor, Tensor],
) -> float:
    """One step of an ordinary training loop."""
    optimizer.zero_grad()
    loss = (model(batch[0]) - batch[1]).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def dense_weights(pruner: Pruner) -> dict[str, Tensor]:
    return {name: each.detach() for name, each in pruner.copy_of("dense").named_parameters()}


def assert_same(first: Pruner, second: Pruner, optimizers: bool = True) -> None:
    """Equal bit for bit: pruners, models, optimisers."""
    assert first.step == second.step
    for name in first.pruned:
        assert torch.equal(first.pruned[name].dense(), second.pruned[name].dense()), name
        assert torch.equal(first.masks[name], second.masks[name]), name
    for (name, one), two in zip(
        first.model.named_parameters(), second.model.parameters(), strict=True
    ):
        assert torch.equal(one, two), name
    if not optimizers:
        return
    for one, two in zip(
        first.optimizer.state.values(), second.optimizer.state.values(), strict=True
    ):
        assert all(torch.equal(one[key], two[key]) for key in one)
