"""A pruned training in two processes (gloo, DDP), and the same in one: for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from rarefy.core.errors import UsageError
from rarefy.pruning.models.pruner import Pruner
from rarefy.pruning.regrowth import SET, RigL
from rarefy.pruning.schedules import constant

UPDATES = 6
WAYS: dict[str, dict[str, Any]] = {
    "magnitude": {},
    "masked": {"update": "masked", "granularity": "global"},
    "project": {"update": "project", "schedule": constant(2)},
    "random": {"score": "random", "seed": 4},
    "saliency": {"score": "saliency"},
    "masked saliency": {"update": "masked", "score": "saliency"},
    "rigl": {"update": "masked", "regrow": RigL(20, share=0.5)},
    "set": {"update": "masked", "regrow": SET(20, share=0.5)},
    "neurons": {"granularity": "neuron", "moments": "reset"},
    "branches": {"branches": True},
    "masked branch": {"branches": True, "masked_gradients": True},
}


def data() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    # double precision: a sum in another order must not turn a choice of masks
    return (
        torch.randn(16, 6, generator=draw, dtype=torch.float64),
        torch.randn(16, 3, generator=draw, dtype=torch.float64),
    )


def net(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def train(way: str, rank: int | None = None) -> dict[str, Any]:
    """``rank``: of this process, None: there is one only."""
    x, y = data()
    if rank is not None:
        x, y = x[rank::2], y[rank::2]
    model = net(seed=rank or 0)  # (DDP gives every process the weights of the first)
    forward = model if rank is None else DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    pruner = Pruner(model, optimizer, keep=0.5, **WAYS[way])
    masks, gradients = [], []
    for _ in range(UPDATES):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(forward(x), y)
        if pruner.branch is not None:
            # one backward pass for both branches: DDP adds up each weight's gradient once
            loss = loss + nn.functional.mse_loss(pruner.masked_branch(x), y)
        loss.backward()
        gradients.append(model[0].weight.grad.clone())
        optimizer.step()
        masks.append(pruner.masks)
    return {
        "masks": masks,
        "gradients": gradients,
        "model": {name: each.detach().clone() for name, each in model.named_parameters()},
        "dense": {name: each.dense().clone() for name, each in pruner.pruned.items()},
        "step": pruner.step,
    }


def refused(way: str, rank: int) -> str:
    """A pruner that is made before the model is wrapped."""
    model = net(seed=rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    pruner = Pruner(model, optimizer, keep=0.5, **WAYS[way])
    wrapped = DistributedDataParallel(model)
    wrapped(data()[0]).sum().backward()
    try:
        optimizer.step()
    except UsageError as error:
        return f"after {pruner.step} updates: {error}"
    return "not refused"


def worker(rank: int, folder: str) -> None:
    """One of two processes: its results go into the folder. They meet in a file, not a network."""
    torch.set_num_threads(1)
    meeting = Path(folder, "meeting").as_uri()
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    found: dict[str, Any] = {way: train(way, rank) for way in WAYS}
    found["refused"] = [refused(way, rank) for way in WAYS]
    found["its own"] = train("magnitude")
    torch.save(found, Path(folder, f"rank{rank}.pt"))
    dist.barrier()
    dist.destroy_process_group()
