"""How the batches of a run are computed: their size, compilation and threads.

All of it can change the last bit of a result: it is chosen once and kept with the store.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from typing import Any, Literal

import torch

from rarefy.core.contracts import Experiment
from rarefy.core.errors import UsageError
from rarefy.core.provenance import provenance
from rarefy.core.settings import can_compile, free_memory, resolve_device
from rarefy.sweep.arrays import CHUNK_RUNS
from rarefy.sweep.store import Store
from rarefy.sweep.workers import MEMORY_SHARE, threads_at_once

BATCH_CPU = 32
"""Stays in cache, and little is lost when the run is killed."""
BATCH_CUDA = 4096
COMPILE_FROM_CUDA = 100_000
"""Runs times steps below which compiling takes longer than it saves."""

Compiled = bool | Literal["auto"]


@dataclass(frozen=True)
class Machine:
    """Where batches are computed: ``at_once`` of them share ``free`` bytes of memory; ``made`` is
    its provenance."""

    device: torch.device
    free: int
    at_once: int
    compiles: bool
    made: dict[str, Any]


def machine_here(study: Experiment, device: str, dtype: str) -> Machine:
    """This machine."""
    where = resolve_device(device)
    made = provenance(where, dtype, 0.0)
    at_once = threads_at_once(study, where)
    return Machine(where, free_memory(where), at_once, can_compile(where), made)


def fitting(study: Experiment, machine: Machine) -> int:
    """How many cells of one batch fit into memory, beside the batches of other workers."""
    needed = max(study.cost().bytes_per_cell, 1)
    if needed > machine.free:
        raise UsageError(
            f"a single cell of {study.name} needs {_bytes(needed)}, "
            f"{_bytes(machine.free)} are free on {machine.device.type}; use smaller parameters"
        )
    return max(int(machine.free * MEMORY_SHARE) // needed // machine.at_once, 1)


def choose(
    store: Store,
    machine: Machine,
    fit: int,
    compiled: Compiled,
    batch: int | None,
    threads: int | None,
) -> dict[str, Any]:
    """Batch size, compilation and threads. A resumed run takes what the first one chose on such a
    device, if it still can; who computes the batches has no say, so that it does not matter."""
    device = machine.device
    known = dict(store.attributes.get("choices", {}))
    chosen = dict(known.get(device.type, {}))
    _choose_threads(store, device, chosen, threads)
    if batch is not None or store.study.one_at_a_time or chosen.get("batch", fit + 1) > fit:
        chosen["batch"] = usual_batch(store, machine, fit, batch, chosen.get("threads"))
    wanted = chosen.get("compiled") if compiled == "auto" else compiled
    if wanted is None:
        steps = int((~store.done()).sum()) * store.study.cost().steps_per_cell
        on_cpu = device.type == "cpu"
        wanted = steps >= (store.study.compile_from if on_cpu else COMPILE_FROM_CUDA)
    forced = os.environ.get("RAREFY_COMPILE")
    if forced in ("0", "1"):
        wanted = forced == "1"
    chosen["compiled"] = bool(wanted) and machine.compiles
    store.remember(choices={**known, device.type: chosen})
    return chosen


def usual_batch(
    store: Store, machine: Machine, fit: int, asked: int | None, threads: int | None
) -> int:
    """Cells of a batch where none was computed yet."""
    device = machine.device
    if store.study.one_at_a_time:
        return 1  # each is stored as soon as it is trained
    if asked is not None:
        return asked
    largest = min(fit, BATCH_CUDA)
    if device.type == "cpu":
        # a small grid in small batches: every worker has some, and a kill loses little
        workers = threads_at_once(store.study, device, threads)
        share = math.ceil(len(store.grid) / (2 * workers))
        largest = min(fit, store.study.batch_on_cpu or BATCH_CPU, share)
    # whole chunks, so that two batches do not write to one file, or an even part of one
    return largest // CHUNK_RUNS * CHUNK_RUNS or 1 << (largest.bit_length() - 1)


def _choose_threads(
    store: Store, device: torch.device, chosen: dict[str, Any], asked: int | None
) -> None:
    begun, before = bool(chosen) and store.done().any(), chosen.get("threads")
    if begun and before is not None and asked not in (None, before):
        raise UsageError(
            f"threads={asked}: store {store.path} was begun with {before}; leave it out, or use "
            "--overwrite or another --out"
        )
    if begun and before is None and device.type == "cpu":
        print(
            f"note: store {store.path} is from before the number of threads was kept; its next "
            "cells may differ from what an undisturbed run gives in their last digits",
            file=sys.stderr,
        )
    # on a GPU a number that nobody asked for decides nothing
    if number := asked or before or (1 if device.type == "cpu" else 0):
        chosen["threads"] = number


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.4g} {unit}"
        size /= 1000
    return f"{size:.4g} TB"
