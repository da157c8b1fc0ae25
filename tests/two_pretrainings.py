"""Contrastive trainings in two processes (gloo), and the same in one: for tests."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from small_pretrainings import batches, encoder, pretraining
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, RunError
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.simclr.data_parallel import World
from rarefy.train.simclr.pretraining import Pretraining

METHODS = (
    *("simclr", "simclr+one-sided", "pruned:0.5", "pruned:0.5+neuron", "branches:0.3"),
    *("branches:0.3+random+both", "branches:0.3+dropout"),
    "simclr+boost+harmonise:4",
)
EPOCHS, LATE = 2, 3


def made(method: str, world: World | None = None, norms: bool = False) -> Pretraining:
    model = encoder(norms=norms)
    if world is not None and world.rank:
        with torch.no_grad():  # (everybody begins with what the first process has)
            for parameter in model.parameters():
                parameter.add_(1)
    return pretraining(method, model=model, shown=batches(world=world), epochs=EPOCHS, warm_up=0.0)


def found(method: str, world: World | None = None) -> dict[str, Any]:
    training = made(method, world)
    seen = training.run(Context())
    weights = training.export_encoder("dense").named_parameters()
    return {
        "weights": {name: one.detach().clone() for name, one in weights},
        "masks": {} if training.pruner is None else training.pruner.masks,
        "history": {name: value for name, value in vars(seen).items() if name != "watched"},
    }


def stopped(world: World, folder: Path) -> dict[str, Any]:
    """Time is over in the second process only; then all go on, with norms that differ."""
    path = folder / "late.pt"
    training = made("branches:0.3+own-norms", world, norms=True)
    context = dataclasses.replace(Context(), deadline=time.monotonic() + 3600)
    done: list[float] = []

    def advance(amount: float) -> None:
        done.append(amount)
        if len(done) == LATE and world.rank == 1:
            object.__setattr__(context, "deadline", time.monotonic() - 1)

    object.__setattr__(context, "advance", advance)
    said = ""
    # statistics of normalisation differ from process to process: those of the first are kept
    checkpoint = Checkpoint(path, written=world.rank == 0)
    try:
        training.run(context, checkpoint)
    except OutOfTime as error:
        said = str(error)
    world.barrier()
    mean = training.model.get_buffer("backbone.network.1.running_mean").clone()
    state = Checkpoint(path).load(torch.device("cpu"))
    assert state is not None
    again = made("branches:0.3+own-norms", world, norms=True)
    again.run(Context(), Checkpoint(path))
    whole = made("branches:0.3+own-norms", world, norms=True)
    whole.run(Context())
    return {
        **{"said": said, "step": training.step, "mean": mean},
        "saved": state["model"]["backbone.network.1.running_mean"],
        "again": again.export_encoder("masked").state_dict(),
        "whole": whole.export_encoder("masked").state_dict(),
    }


def apart(world: World, folder: Path) -> str:
    """Each process has a folder of its own: only the first has a checkpoint."""
    path = folder / f"apart{world.rank}.pt"
    if world.rank == 0:
        begun = made("simclr")
        begun.advance(next(begun.batches.epoch(0)))
        Checkpoint(path).save(begun.state_dict())
    try:
        made("simclr", world).run(Context(), Checkpoint(path))
    except RunError as error:
        return str(error)
    return ""


def gathered(world: World) -> list[Tensor]:
    """Points in any layout and type arrive as they are, and gradients reach one's own."""
    every = torch.arange(24.0).reshape(2, 3, 4)
    lying = every[world.rank].T.contiguous().T  # columns side by side
    assert not lying.is_contiguous()
    mine = every[world.rank].clone().requires_grad_()
    (world.all_gather(mine) * torch.arange(6.0)[:, None]).sum().backward()
    assert mine.grad is not None
    half = world.all_gather(every[world.rank].bfloat16())
    return [world.all_gather(lying), half.float(), mine.grad]


def worker(rank: int, folder: str) -> None:
    """One of two processes: its results go into the folder. They meet in a file, not a network."""
    torch.set_num_threads(1)
    meeting = Path(folder, "meeting").as_uri()
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    world = World(rank, 2)
    results: dict[str, Any] = {method: found(method, world) for method in METHODS}
    results["stopped"] = stopped(world, Path(folder))
    results["apart"] = apart(world, Path(folder))
    results["gathered"] = gathered(world)
    results["agreed"] = [world.agree_on(number, torch.device("cpu")) for number in (7, rank)]
    torch.save(results, Path(folder, f"rank{rank}.pt"))
    dist.barrier()
    dist.destroy_process_group()
