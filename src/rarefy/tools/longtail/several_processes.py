"""One pre-training by all processes that ``torchrun`` started.

torchrun --nproc-per-node 4 -m rarefy pretrain cifar10 --rho 100 --method branches:0.1 --seeds 1
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.core.rng import key
from rarefy.core.settings import prepare_cpu, resolve_device
from rarefy.core.text import file_name
from rarefy.measure.representation.groups import summary
from rarefy.tools.longtail.pretraining import Pretrained, PretrainTask, pretrain_one
from rarefy.train.contrast.method import Method
from rarefy.train.contrast.together import joined

SAID_EVERY = 10.0
"""Seconds between two lines about progress."""


def pretrain_together(
    task: PretrainTask,
    methods: tuple[str, ...],
    seeds: int,
    store: Path,
    device: str,
    save: Path | None,
    max_seconds: float | None,
) -> None:
    """Train; the first process judges, writes ``store``/NAME.json and prints it."""
    if len(methods) > 1 or seeds > 1:
        raise UsageError("under torchrun one method and one seed are trained: --method X --seeds 1")
    place = resolve_device(device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(place)
    else:
        prepare_cpu()
    name = file_name(f"{Path(task.data).name}-{task.network}-{methods[0]}-together")
    with joined(place) as world:
        context = Context(
            device=place,
            say=_Spoken() if world.rank == 0 else _silent,
            deadline=None if max_seconds is None else time.monotonic() + max_seconds,
            scratch=store / ".scratch",
            models=save,
        )
        try:
            found = pretrain_one(
                task, Method.parse(methods[0]), key("together", 0), 0, context, name, world
            )
        except OutOfTime:
            if world.rank == 0:
                print("note: out of time; the same command goes on", file=sys.stderr)
            return
        if world.rank == 0:
            _told(found, methods[0], world.size, store / f"{name}.json")


class _Spoken:
    """A line now and then: several processes cannot share a progress bar."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, text: str) -> None:
        if time.monotonic() - self._last >= SAID_EVERY:
            self._last = time.monotonic()
            print(text, file=sys.stderr)


def _silent(text: str) -> None:
    return None


def _told(found: Pretrained, method: str, processes: int, path: Path) -> None:
    said: dict[str, Any] = {
        "method": method,
        "processes": processes,
        "loss": found.history.loss[-1:],
        "nonfinite_step": found.history.nonfinite_step,
    }
    if found.quality is not None:
        for protocol, by_rank in found.quality.accuracy.items():
            told = summary(by_rank.numpy(), found.parts.counts)
            said[protocol] = {
                name: 100 * getattr(told, name)
                for name in ("overall", "many", "medium", "few", "delta_20")
            }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(said, indent=1)
    path.write_text(text + "\n", "utf-8")
    print(text)
