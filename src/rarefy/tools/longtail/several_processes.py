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
from dataclasses import dataclass
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
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL
from rarefy.tools.longtail.sets import parts_of
from rarefy.train.simclr.data_parallel import World, join_world
from rarefy.train.simclr.method import Method

SAID_EVERY = 10.0
"""Seconds between two lines about progress."""
TRAIN, KNOWN, OTHER = range(3)
"""What there is to do: nothing was trained yet, this very training is finished, or another is."""


@dataclass(frozen=True)
class _Planned:
    """One of the trainings, and where it is told."""

    task: PretrainTask
    method: str
    name: str
    path: Path
    settings: str
    saved: OutputFolder | None


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
    """Train, first the control of a long tail where one is asked for; the first process judges,
    writes ``store``/NAME.json of each and prints them. What is finished is only printed."""
    wanted = [task for task in tasks if not task.tail.balanced]
    if len(methods) > 1 or seeds > 1 or len(wanted) != 1:
        raise UsageError(
            "under torchrun one method, one rho and one seed are trained: "
            "--method X --rho R --seeds 1"
        )
    place = resolve_device(device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(place)
    # the control first: that the file of the long tail is there means that all is done
    ordered = sorted(tasks, key=lambda task: not task.tail.balanced)
    plans = [_planned(task, methods[0], store, save, overwrite) for task in ordered]
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    with join_world(place) as world:
        todo = [TRAIN if overwrite else _to_do(plan, world, place) for plan in plans]
        if OTHER in todo:
            path = plans[todo.index(OTHER)].path
            raise UsageError(
                f"{path} is of a training with other settings; use --overwrite or another --out"
            )
        for plan, what in zip(plans, todo, strict=True):
            if what == TRAIN and not _trained(plan, store, deadline, world, place):
                if world.rank == 0:
                    print("note: out of time; the same command goes on", file=sys.stderr)
                return
        if world.rank == 0:
            *controls, told = (json.loads(plan.path.read_text("utf-8")) for plan in plans)
            print(json.dumps({**told, **({"control": controls[0]} if controls else {})}, indent=1))
            if TRAIN not in todo:
                print("note: this was trained before (--overwrite does it again)", file=sys.stderr)


def _planned(
    task: PretrainTask, method: str, store: Path, save: Path | None, overwrite: bool
) -> _Planned:
    kind = "balanced-rho" if task.tail.balanced else "rho"
    words = f"{Path(task.data).name}-{task.network}-{method}-{kind}-{task.tail.rho:g}-together"
    name, settings = file_name(words), _settings(task, method)
    saved = None if save is None else OutputFolder(save, settings, overwrite)
    if saved is not None:
        saved.check([f"{name}.pt"], option="save")
    path = store / f"{name}.json"
    if overwrite:
        check_output(path, settings, overwrite=True)
    return _Planned(task, method, name, path, settings, saved)


def _trained(
    plan: _Planned, store: Path, deadline: float | None, world: World, place: torch.device
) -> bool:
    """Whether there was time enough."""
    context = Context(
        device=place,
        say=_Spoken() if world.rank == 0 else _silent,
        deadline=deadline,
        scratch=store / ".scratch",
        models=plan.saved,
    )
    run_key, method = key("together", 0), Method.parse(plan.method)
    try:
        found = pretrain_one(plan.task, method, run_key, 0, context, plan.name, world)
    except OutOfTime:
        return False
    if world.rank == 0:
        _write(found, plan, world.size)
    return True


def _settings(task: PretrainTask, method: str) -> str:
    """Changes with everything that changes what is trained."""
    seen = parts_of(task.data, task.tail, 0, torch.device("cpu")).seen.ids  # (of a split file)
    own = key(task, method, seen, data_identity(task.data), identity(task.network))
    return f"{own & (2**64 - 1):016x}"


def _to_do(plan: _Planned, world: World, place: torch.device) -> int:
    """As the first process sees it: others may have another disk."""
    found = TRAIN
    if plan.path.exists():
        try:
            known = read_json(plan.path)["settings"]
        except (OSError, ValueError, KeyError, TypeError):
            known = None
        found = KNOWN if known == plan.settings else OTHER
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


def _write(found: PretrainResult, plan: _Planned, processes: int) -> None:
    task = plan.task
    said: dict[str, Any] = {
        "settings": plan.settings,
        "data": task.data,
        "network": task.network,
        "images": BALANCED if task.tail.balanced else LONG_TAIL,
        "rho": task.tail.rho,
        "epochs": task.recipe.epochs,
        "method": plan.method,
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
    write_output(plan.path, json.dumps(said, indent=1) + "\n", plan.settings, overwrite=True)


def _number(value: float) -> float | None:
    """JSON has no word for what is no number."""
    return value if math.isfinite(value) else None
