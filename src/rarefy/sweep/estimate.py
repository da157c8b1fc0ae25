"""How long a run would take on this machine: a few of its cells are tried for a moment."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import threading
import time
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Experiment
from rarefy.core.errors import OutOfTime, RarefyError
from rarefy.core.settings import free_memory, prepare_cpu
from rarefy.sweep.grid import grid_of
from rarefy.sweep.workers import threads_at_once

PROBE_SECONDS = 1.0
PATIENCE = 20.0
"""Longest wait for a first step, in seconds."""
PROBE_CELLS = 4
"""Tried together: batches are faster per cell than single cells."""
START = 120.0
"""Longest wait for a process that has to import everything."""


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
            line.send(_probe(experiment, torch.device(device), warm_up=turn == 0))


def _probe(experiment: Experiment, device: torch.device, warm_up: bool) -> float | str:
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
    """Seconds taken, and run-steps done in them."""
    stop, done, began = threading.Event(), 0.0, time.monotonic()

    def advance(amount: float) -> None:
        nonlocal done
        done += amount
        if time.monotonic() - began > seconds:
            stop.set()

    try:
        experiment.simulate(cells, Context(device=device, advance=advance, stop=stop))
        done = len(cells) * max(experiment.cost().steps_per_cell, 1)  # (some tell nothing)
    except OutOfTime:
        pass
    return time.monotonic() - began, done


def in_words(seconds: float | str) -> str:
    """``40 s``, ``12 min``, ``3 h``, ``5 days``; a reason as it is."""
    if isinstance(seconds, str):
        return seconds
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.{0 if seconds >= 10 * unit else 1}f} {name}"
    return f"{seconds / 86400:.0f} days"
