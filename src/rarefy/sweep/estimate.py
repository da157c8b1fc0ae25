"""How long a run would take on this machine: a few of its cells are tried for a moment."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Experiment
from rarefy.core.errors import OutOfTime, RarefyError
from rarefy.core.settings import free_memory, prepare_cpu
from rarefy.core.threads import exactly
from rarefy.sweep.grid import grid_of
from rarefy.sweep.workers import threads_at_once

PROBE_SECONDS = 1.0
PATIENCE = 20.0
"""Longest wait for a first step, in seconds."""
PROBE_CELLS = 4
"""Tried together: batches are faster per cell than single cells."""
START = 120.0
"""Longest wait for a process that has to import everything."""
KNOWN = {
    "benign-correlation": 0.06e-3,
    "contrast-alignment": 5.8e-3,
    "granularity-errors": 5.5e-3,
    "influence-removal": 8.8e-3,
    "sparse-mnist": 0.6,
    "topk-phase": 0.88e-3,
}
"""Core-seconds per run-step of the demo's studies, compiling and judging in it, on a core of
``LOOPS`` loops per second: what a first ``rarefy demo`` says it took on a quiet machine, times
cores, by run-steps (``rarefy studies NAME``)."""
PAGE = 20.0
"""Core-seconds for the demo's page; one core draws it."""
LOOPS = 1650.0
"""Of ``core_speed`` in a second."""
FIRST = 60.0
"""So many seconds of work weigh as much as that."""


def estimates(
    experiments: Mapping[str, Experiment], device: torch.device
) -> Iterator[tuple[str, float | str]]:
    """For each: seconds that its whole grid would take, or why nobody knows. Good to a factor of
    about two: compiling and larger batches are not in it.

    Cells are tried in a process of their own, one after the other: a step that takes minutes can
    only be ended with its process.
    """
    process, line = None, None
    for name, experiment in experiments.items():
        if process is None or line is None or not process.is_alive():
            process, line = _start()
        found: float | str = f"more than {PATIENCE:.0f} s until the first step"
        with contextlib.suppress(EOFError, OSError):  # (killed for memory, say)
            line.send((experiment, device.type))
            if line.poll(START) and line.recv() and line.poll(PATIENCE):
                found = line.recv()
        if isinstance(found, str):
            process.kill()
            process.join()
        yield name, found
    if process is not None:
        process.kill()


def _start() -> tuple[BaseProcess, Connection]:
    line, end = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_probe_all, args=(end,))
    process.daemon = True
    process.start()
    end.close()
    return process, line


def _probe_all(line: Connection) -> None:
    """Serve: an experiment comes in; a word that it is imported, then what its probe gave, out."""
    prepare_cpu()
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError):
        for turn in itertools.count():
            experiment, device = line.recv()
            line.send("ready")
            line.send(seconds_for(experiment, torch.device(device), warm_up=turn == 0))


def seconds_for(experiment: Experiment, device: torch.device, warm_up: bool = True) -> float | str:
    """Seconds that its whole grid would take, tried in this process, or why nobody knows."""
    cost, grid, free = experiment.cost(), grid_of(experiment), free_memory(device)
    if cost.bytes_per_cell > free:
        return "does not fit into memory"
    try:
        experiment.inputs()
    except RarefyError as error:
        return str(error)
    count = 1 if experiment.one_at_a_time else min(PROBE_CELLS, len(grid))
    cells = grid.cells(np.arange(min(count, free // max(cost.bytes_per_cell, 1))))
    try:
        if warm_up:  # what a process does once must not be counted for every cell
            _timed(experiment, cells, device, 0.0)
        taken, done = _timed(experiment, cells, device, PROBE_SECONDS)
    except Exception as error:
        return f"cannot be tried here: {error}"
    steps = len(grid) * max(cost.steps_per_cell, 1)
    return steps * taken / done / threads_at_once(experiment, device)


def _timed(
    experiment: Experiment, cells: Cells, device: torch.device, seconds: float
) -> tuple[float, float]:
    """Seconds taken, and run-steps done in them, from the first that was told of: what is done once
    (reading images, say) must not be counted for every cell."""
    stop, told = threading.Event(), []

    def advance(amount: float) -> None:
        told.append((time.monotonic(), amount))
        if told[-1][0] - told[0][0] >= seconds and len(told) > 1:
            stop.set()

    began = time.monotonic()
    try:
        experiment.simulate(cells, Context(device=device, advance=advance, stop=stop))
    except OutOfTime:
        return told[-1][0] - told[0][0], sum(amount for _, amount in told[1:])
    return time.monotonic() - began, len(cells) * max(experiment.cost().steps_per_cell, 1)


class Forecast:
    """How long several studies and a page of them take: their known work, by the speed of these
    cores for a second now; corrected by what the first of them took."""

    def __init__(self, work: Mapping[str, float], device: torch.device) -> None:
        """``work``: run-steps of each."""
        self._known = device.type == "cpu" and work.keys() <= KNOWN.keys()
        cores = torch.get_num_threads()
        self._left = {name: KNOWN.get(name, 0.0) * steps / cores for name, steps in work.items()}
        self._left["page"] = PAGE
        self._first = self._pace = LOOPS / core_speed(cores) if self._known else 1.0
        self._before, self.took = 0.0, dict.fromkeys(self._left, 0.0)
        self._began = time.monotonic()

    def left(self) -> str:
        """``about 3 min``; nothing where nobody knows."""
        seconds = self._pace * sum(self._left.values())
        return f"about {in_words(seconds)}" if self._known else ""

    def done(self, name: str) -> None:
        now = time.monotonic() - self._began
        self.took[name] = now - sum(self.took.values())
        self._before += self._left.pop(name)
        # the longer it has gone on, the more that counts
        self._pace = (now + FIRST * self._first) / (self._before + FIRST)


def core_speed(cores: int, seconds: float = 2.0) -> float:
    """Loops per second of each of so many cores, all at once: small products and tanh, as in the
    studies."""

    def work(_: int) -> float:
        batch, weights = torch.ones(32, 50, 100), torch.full((32, 100, 50), 0.01)
        count, began = 0, time.monotonic()
        while time.monotonic() - began < seconds:
            torch.tanh(batch @ weights).sum()
            count += 1
        return count / (time.monotonic() - began)

    with exactly(1), ThreadPoolExecutor(cores) as pool:
        return sum(pool.map(work, range(cores))) / cores


def in_words(seconds: float | str) -> str:
    """``40 s``, ``12 min``, ``3 h``, ``5 days``; a reason as it is."""
    if isinstance(seconds, str):
        return seconds
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.{0 if seconds >= 10 * unit else 1}f} {name}"
    return f"{seconds / 86400:.0f} days"
