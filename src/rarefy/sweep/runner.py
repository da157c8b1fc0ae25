"""Fill a store: run its pending cells in batches until done, out of time or stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Context, Experiment
from rarefy.core.errors import Interrupted, OutOfTime, RunError, UsageError, bad_value
from rarefy.core.progress import Progress
from rarefy.core.provenance import provenance
from rarefy.core.settings import (
    can_compile,
    free_memory,
    resolve_device,
    resolve_dtype,
)
from rarefy.core.writing import OutputFolder, check_place
from rarefy.sweep.arrays import CHUNK_RUNS
from rarefy.sweep.process_state import prepared_cpu, sigterm_as_interrupt
from rarefy.sweep.spec import spec_hash, spec_of
from rarefy.sweep.store import Store
from rarefy.sweep.workers import MEMORY_SHARE, compute, threads_at_once, usual_jobs

BATCH_CPU = 32
"""Stays in cache, and little is lost when the run is killed."""
BATCH_CUDA = 4096
COMPILE_FROM_RUN_STEPS = {"cpu": 20_000, "cuda": 100_000}
"""Below this, compiling takes longer than it saves."""

Compiled = bool | Literal["auto"]


@dataclass(frozen=True)
class Execution:
    """What became of a run; ``note`` says how to go on when it is not finished."""

    dataset: xr.Dataset
    path: Path
    cells: int
    cells_done: int
    note: str = ""

    @property
    def finished(self) -> bool:
        return self.cells_done == self.cells


def execute(
    study: Experiment,
    scale: str,
    device: str = "auto",
    dtype: str = "float32",
    out: Path | str = "runs",
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    compiled: Compiled = "auto",
    batch: int | None = None,
    go_on: str = "",
    jobs: int | None = 1,
    models: Path | None = None,
    threads: int | None = None,
) -> Execution:
    """Run what is not yet in the store at ``out`` and read the whole of it.

    ``go_on`` is what a person does to continue ("rarefy run ..."), for the messages. ``jobs``
    processes at once, for studies whose cells are trainings of their own (None: as many as usual;
    a script that is no module of its own must then guard its main part, as for every process that
    Python spawns); ``models``: a folder for the networks these train. ``threads`` inside each
    operation, on a CPU one if not given: part of how a cell is computed, so that its bits do not
    depend on who computes it, and kept with the store.
    """
    check_run(study, max_seconds, jobs, threads, batch)
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    where, kind = resolve_device(device), resolve_dtype(dtype)
    check_place(Path(out))
    store = Store(Path(out), study, scale, dtype, overwrite)
    if store.done().all():
        _refuse_other_inputs(store, _inputs_if_there(study))
        store.tidy()
        return _result(store)
    saved = None if models is None else network_folder(study, dtype, models, overwrite)
    # before anything is written: a cell that can never run must not leave a store behind
    fitting = _fitting(study, where)
    inputs = study.inputs()
    store.begin()
    try:
        _refuse_other_inputs(store, inputs)
        if "inputs" not in store.attributes or not store.done().any():
            if store.attributes.get("inputs", inputs) != inputs:
                # no cell is done, but trainings may be under way: with what is no longer there
                shutil.rmtree(store.scratch, ignore_errors=True)
            store.remember(inputs=inputs)
        choices = _choices(store, where, fitting, compiled, batch, threads)
        context = Context(
            device=where,
            dtype=kind,
            compiled=choices["compiled"],
            deadline=deadline,
            scratch=store.scratch,
            models=saved,
        )
        made = provenance(where, dtype, store.wall_seconds())
        made |= {"inputs": inputs} if inputs else {}
        earlier = store.attributes.get("provenance", {}).get("earlier")
        store.remember(provenance={**made, "earlier": earlier} if earlier else made)
        if jobs is None:
            jobs = usual_jobs(study, where, choices.get("threads"))
        note = _fill(store, context, choices, progress, go_on, jobs)
    finally:
        store.close()
    return _result(store, note)


def check_run(
    study: Experiment,
    max_seconds: float | None,
    jobs: int | None,
    threads: int | None,
    batch: int | None = None,
) -> None:
    """Refuse what no run can be given."""
    if max_seconds is not None and not max_seconds > 0:
        raise bad_value("max_seconds", max_seconds, "must be more than 0")
    if batch is not None and batch < 1:
        raise bad_value("batch", batch, "must be at least 1")
    if threads is not None and threads < 1:
        raise bad_value("threads", threads, "must be at least 1")
    if jobs is not None and jobs < 1:
        raise bad_value("jobs", jobs, "must be at least 1")
    if jobs is not None and jobs > 1 and not study.one_at_a_time:
        raise bad_value(
            "jobs", jobs, f"cells of {study.name} run together in one process already; use 1"
        )


def network_folder(study: Experiment, dtype: str, folder: Path, overwrite: bool) -> OutputFolder:
    """Where a run saves its networks; refused if those of another run are there."""
    found = OutputFolder(folder, spec_hash(spec_of(study, dtype), study.renamed), overwrite)
    found.check([f"{name}.pt" for name in study.network_names()], option="save")
    return found


def _result(store: Store, note: str = "") -> Execution:
    done = store.done()
    return Execution(store.read(), store.path, len(done), int(done.sum()), note)


def _inputs_if_there(study: Experiment) -> dict[str, str]:
    """A finished store can be read where its data are no longer."""
    try:
        return study.inputs()
    except UsageError:
        return {}


def _refuse_other_inputs(store: Store, inputs: dict[str, str]) -> None:
    before = store.attributes.get("inputs")
    if before is None or not store.done().any():
        return
    for name, content in inputs.items():
        if before.get(name) != content:
            raise UsageError(
                f"store {store.path} was made from {name} {before.get(name)}, not {content}; "
                "use --overwrite or another --out"
            )


def _fill(
    store: Store, context: Context, choices: dict[str, Any], shown: bool, go_on: str, jobs: int
) -> str:
    """Run all pending cells; the text for a person when time ran out, else nothing."""
    before = int(store.done().sum())
    try:
        with contextlib.ExitStack() as stack:
            _fill_batches(store, context, choices, shown, jobs, stack)
    except OutOfTime:
        some = int(store.done().sum()) > before
        return _unfinished(store, "time is over", go_on, started=some)
    except KeyboardInterrupt:
        raise Interrupted(_unfinished(store, "stopped", go_on)) from None
    except RunError as error:
        raise RunError(_unfinished(store, str(error), go_on)) from error
    shutil.rmtree(store.scratch, ignore_errors=True)
    return ""


def _fill_batches(
    store: Store,
    context: Context,
    choices: dict[str, Any],
    shown: bool,
    jobs: int,
    stack: contextlib.ExitStack,
) -> None:
    study, pending, batch = store.study, ~store.done(), choices["batch"]
    steps = max(study.cost().steps_per_cell, 1)
    report: Progress | None = None
    if shown:
        total, before = len(pending) * steps, int((~pending).sum()) * steps
        report = stack.enter_context(Progress(study.name, total, before))
        context = dataclasses.replace(context, advance=report.advance, say=report.say)
    stack.enter_context(sigterm_as_interrupt())
    stack.enter_context(prepared_cpu())
    context.check_time()
    # windows of the run axis, not of what is pending: a resumed run then makes the same batches as
    # an undisturbed one, and gives the same bits
    windows = (
        start + np.flatnonzero(pending[start : start + batch])
        for start in range(0, len(pending), batch)
    )
    batches = [runs for runs in windows if len(runs)]
    work, begun = 0, time.monotonic()
    results = compute(study, store.grid, batches, context, jobs, choices.get("threads"))
    for runs, outputs in stack.enter_context(results):
        store.write(runs, outputs, time.monotonic() - begun)
        begun = time.monotonic()
        work += len(runs) * steps
        if report:  # (processes tell themselves how far they are, a little later)
            report.batch_done(work if jobs == 1 else 0)


def _unfinished(store: Store, why: str, go_on: str, started: bool = True) -> str:
    done = store.done()
    hint = f"; go on with: {go_on}" if go_on else ""
    slow = "" if started else " (not one batch was through: give it more time)"
    if any(store.scratch.glob("*")):
        slow = " (what was under way is kept beside it)"
    return f"{why}: {done.sum()} of {len(done)} cells are stored in {store.path}{slow}{hint}"


def _fitting(study: Experiment, device: torch.device) -> int:
    """How many cells of one batch fit into memory, beside the batches of other workers."""
    free, needed = free_memory(device), max(study.cost().bytes_per_cell, 1)
    if needed > free:
        raise UsageError(
            f"a single cell of {study.name} needs {_bytes(needed)}, "
            f"{_bytes(free)} are free on {device.type}; use smaller parameters"
        )
    return max(int(free * MEMORY_SHARE) // needed // threads_at_once(study, device), 1)


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.4g} {unit}"
        size /= 1000
    return f"{size:.4g} TB"


def _choices(
    store: Store,
    device: torch.device,
    fitting: int,
    compiled: Compiled,
    batch: int | None,
    threads: int | None,
) -> dict[str, Any]:
    """Batch size, compilation and threads. All can change the last bit of a result, so a resumed
    run takes what the first one chose on such a device, if it still can."""
    known = dict(store.attributes.get("choices", {}))
    chosen = dict(known.get(device.type, {}))
    _choose_threads(store, device, chosen, threads)
    largest = min(fitting, BATCH_CUDA)
    if device.type == "cpu":
        # a small grid in small batches: every worker has some, and a kill loses little
        workers = threads_at_once(store.study, device, chosen["threads"])
        share = math.ceil(len(store.grid) / (2 * workers))
        largest = min(fitting, BATCH_CPU, share)
    if store.study.one_at_a_time:
        batch = 1  # each is stored as soon as it is trained
    if batch is not None:
        chosen["batch"] = batch
    elif chosen.get("batch", fitting + 1) > fitting:
        # whole chunks, so that two batches do not write to one file, or an even part of one
        whole = largest // CHUNK_RUNS * CHUNK_RUNS
        chosen["batch"] = whole or 1 << (largest.bit_length() - 1)
    wanted = chosen.get("compiled") if compiled == "auto" else compiled
    if wanted is None:
        steps = int((~store.done()).sum()) * store.study.cost().steps_per_cell
        wanted = steps >= COMPILE_FROM_RUN_STEPS[device.type]
    forced = os.environ.get("RAREFY_COMPILE")
    if forced in ("0", "1"):
        wanted = forced == "1"
    chosen["compiled"] = bool(wanted) and can_compile(device)
    store.remember(choices={**known, device.type: chosen})
    return chosen


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
