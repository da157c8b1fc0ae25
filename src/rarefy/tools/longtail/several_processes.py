"""One pre-training by all processes that ``torchrun`` started.

torchrun --nproc-per-node 4 -m rarefy pretrain cifar10 --rho 100 --method branches:0.1 --seeds 1
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.core.reading import read_json
from rarefy.core.rng import key
from rarefy.core.settings import resolve_device
from rarefy.core.text import file_name
from rarefy.core.writing import OutputFolder, check_output, write_output
from rarefy.measure.representation.groups import summary
from rarefy.nets.builder import identity
from rarefy.tools.image_data import data_identity
from rarefy.tools.longtail.pretraining import PretrainResult, PretrainTask, pretrain_one
from rarefy.tools.longtail.sets import parts_of
from rarefy.train.simclr.data_parallel import World, join_world
from rarefy.train.simclr.method import Method

SAID_EVERY = 10.0
"""Seconds between two lines about progress."""
TRAIN, KNOWN, OTHER = range(3)
"""What there is to do: nothing was trained yet, this very training is finished, or another is."""


def pretrain_together(
    tasks: Sequence[PretrainTask],
    methods: tuple[str, ...],
    seeds: int,
    store: Path,
    device: str,
    save: Path | None,
    max_seconds: float | None,
    overwrite: bool = False,
) -> None:
    """Train (the control of a long tail is left out); the first process judges, writes
    ``store``/NAME.json and prints it. What is finished is only printed."""
    wanted = [task for task in tasks if not task.tail.balanced]
    if len(methods) > 1 or seeds > 1 or len(wanted) != 1:
        raise UsageError(
            "under torchrun one method, one rho and one seed are trained: "
            "--method X --rho R --seeds 1"
        )
    task, method = wanted[0], methods[0]
    place = resolve_device(device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(place)
    words = f"{Path(task.data).name}-{task.network}-{method}-rho-{task.tail.rho:g}-together"
    name = file_name(words)
    path = store / f"{name}.json"
    settings = _settings(task, method)
    saved = None if save is None else OutputFolder(save, settings, overwrite)
    if saved is not None:
        saved.check([f"{name}.pt"], option="save")
    if overwrite:
        check_output(path, settings, overwrite=True)
    with join_world(place) as world:
        todo = TRAIN if overwrite else _to_do(path, settings, world, place)
        if todo == OTHER:
            raise UsageError(
                f"{path} is of a training with other settings; use --overwrite or another --out"
            )
        if todo == KNOWN:
            if world.rank == 0:
                print(path.read_text("utf-8"), end="")
                print("note: this was trained before (--overwrite does it again)", file=sys.stderr)
            return
        context = Context(
            device=place,
            say=_Spoken() if world.rank == 0 else _silent,
            deadline=None if max_seconds is None else time.monotonic() + max_seconds,
            scratch=store / ".scratch",
            models=saved,
        )
        run_key = key("together", 0)
        try:
            found = pretrain_one(task, Method.parse(method), run_key, 0, context, name, world)
        except OutOfTime:
            if world.rank == 0:
                print("note: out of time; the same command goes on", file=sys.stderr)
            return
        if world.rank == 0:
            _told(found, task, method, world.size, path, settings)


def _settings(task: PretrainTask, method: str) -> str:
    """Changes with everything that changes what is trained."""
    seen = parts_of(task.data, task.tail, 0, torch.device("cpu")).seen.ids  # (of a split file)
    own = key(task, method, seen, data_identity(task.data), identity(task.network))
    return f"{own & (2**64 - 1):016x}"


def _to_do(path: Path, settings: str, world: World, place: torch.device) -> int:
    """As the first process sees it: others may have another disk."""
    found = TRAIN
    if path.exists():
        try:
            known = read_json(path)["settings"]
        except (OSError, ValueError, KeyError, TypeError):
            known = None
        found = KNOWN if known == settings else OTHER
    said = torch.tensor([found], device=place)
    world.broadcast([said])
    return int(said)


class _Spoken:
    """A line now and then: several processes cannot share a progress bar."""

    def __init__(self) -> None:
        self._last = -math.inf

    def __call__(self, text: str) -> None:
        if time.monotonic() - self._last >= SAID_EVERY:
            self._last = time.monotonic()
            print(text, file=sys.stderr)


def _silent(text: str) -> None:
    return None


def _told(
    found: PretrainResult,
    task: PretrainTask,
    method: str,
    processes: int,
    path: Path,
    settings: str,
) -> None:
    said: dict[str, Any] = {
        "settings": settings,
        "data": task.data,
        "network": task.network,
        "rho": task.tail.rho,
        "epochs": task.recipe.epochs,
        "method": method,
        "processes": processes,
        "loss": [_number(value) for value in found.history.loss[-1:]],
        "nonfinite_step": found.history.nonfinite_step,
        "kept_epoch": found.history.kept_epoch or task.recipe.epochs,
        "stopped_epoch": found.history.stopped_epoch or None,
    }
    if found.quality is not None:
        for protocol, by_rank in found.quality.accuracy.items():
            told = summary(by_rank.numpy(), found.parts.counts)
            said[protocol] = {
                name: _number(100 * getattr(told, name))
                for name in ("overall", "many", "medium", "few", "delta_20")
            }
    text = json.dumps(said, indent=1)
    write_output(path, text + "\n", settings, overwrite=True)
    print(text)


def _number(value: float) -> float | None:
    """JSON has no word for what is no number."""
    return value if math.isfinite(value) else None
