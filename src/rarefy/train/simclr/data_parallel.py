"""One training in several processes (``torchrun``): each has a share of every batch, negatives are
those of the whole batch, and all take the same step.

Every process computes the loss of the whole batch from everybody's points, of which only its own
carry gradients; the sum of the processes' gradients is then exactly the gradient of one process
that has the whole batch. (Normalisation layers see their own process's share alone, as they do in
PyTorch's own ``DistributedDataParallel``.)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from rarefy.core.errors import bad_value


@dataclass(frozen=True)
class World:
    """This process's place among all: ``rank`` of ``size``."""

    rank: int = 0
    size: int = 1

    def share(self, batch: int) -> slice:
        """Its part of a batch, the same number for all."""
        if batch % self.size:
            raise bad_value("batch", batch, f"must be a multiple of the {self.size} processes")
        mine = batch // self.size
        return slice(self.rank * mine, (self.rank + 1) * mine)

    def all_gather(self, points: Tensor) -> Tensor:
        """Everybody's points in the order of ranks; gradients go to one's own."""
        if self.size == 1:
            return points
        mine = points.detach().contiguous()
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(parts, mine)
        parts[self.rank] = points
        return torch.cat(parts)

    def all_reduce_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace gradients by their sums over all processes, in one message."""
        if self.size == 1:
            return
        found = [one.grad for one in parameters if one.grad is not None]
        flat = torch.cat([one.flatten() for one in found])
        dist.all_reduce(flat)
        first = 0
        for one in found:
            one.copy_(flat[first : first + one.numel()].view_as(one))
            first += one.numel()

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Everybody has what the first process has."""
        if self.size > 1:
            for one in tensors:
                dist.broadcast(one.detach(), 0)

    def agree_on(self, number: int, device: torch.device) -> bool:
        """Whether all processes have the same number."""
        if self.size == 1:
            return True
        ends = torch.tensor([number, -number], device=device)
        dist.all_reduce(ends, dist.ReduceOp.MAX)
        return bool(ends.sum() == 0)

    def barrier(self) -> None:
        if self.size > 1:
            dist.barrier()


@contextmanager
def join_world(device: torch.device) -> Iterator[World]:
    """The world that ``torchrun`` started this process in, or a world of one."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    if device.type == "cuda" and "LOCAL_RANK" in os.environ:  # each process has its own GPU
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    already = dist.is_initialized()
    if not already:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), dist.get_world_size())
    finally:
        if not already:
            dist.destroy_process_group()
