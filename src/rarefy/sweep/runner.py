"""Fill a store: run its pending cells in batches until done, out of time or stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Context, Experiment
from rarefy.core.errors import Interrupted, OutOfTime, RunError, Terminated, UsageError, bad_value
from rarefy.core.place import Place, as_place
from rarefy.core.progress import Progress
from rarefy.core.settings import resolve_dtype
from rarefy.core.writing import OutputFolder, check_name, check_place
from rarefy.sweep.choices import (
    Compiled,
    Machine,
    choose,
    fitting,
    machine_here,
    usual_batch,
)
from rarefy.sweep.cluster import Cluster
from rarefy.sweep.connecting import check_cluster, connect
from rarefy.sweep.process_state import prepared_cpu, sigterm_as_interrupt
from rarefy.sweep.spec import spec_hash, spec_of
from rarefy.sweep.store import Store
from rarefy.sweep.workers import compute, usual_jobs


@dataclass(frozen=True)
class Execution:
    """What became of a run; ``note`` says how to go on when it is not finished."""

    dataset: xr.Dataset
    path: Place
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
    out: Place | str = "runs",
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    compiled: Compiled = "auto",
    batch: int | None = None,
    go_on: str = "",
    jobs: int | None = 1,
    models: Path | None = None,
    threads: int | None = None,
    cluster: Any = None,
) -> Execution:
    """Run what is not yet in the store at ``out`` and read the whole of it.

    ``go_on`` is what a person does to continue ("rarefy run ..."), for the messages. ``jobs``
    processes at once, for studies whose cells are trainings of their own (None: as many as usual;
    a script that is no module of its own must then guard its main part, as for every process that
    Python spawns); ``models``: a folder for the networks these train. ``threads`` inside each
    operation, on a CPU one if not given: part of how a cell is computed, so that its bits do not
    depend on who computes it, and kept with the store. ``cluster``: the workers of a Dask cluster
    compute (``rarefy.sweep.cluster``), with ``device`` as they have it.
    """
    check_run(study, max_seconds, jobs, threads, batch)
    if cluster is not None:
        check_cluster(cluster, jobs, models)
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    kind = resolve_dtype(dtype)
    machine = None if cluster is not None else machine_here(study, device, dtype)
    out = as_place(out)
    check_place(out) if isinstance(out, Path) else check_name(out)
    store = Store(out, study, scale, dtype, overwrite)
    if store.done().all():
        _refuse_other_inputs(store, _inputs_if_there(study))
        store.tidy()
        return _result(store)
    if isinstance(out, Path):  # (what is finished can be read from anywhere)
        check_place(out, replaced=True)
    saved = None if models is None else network_folder(study, dtype, models, overwrite)
    with contextlib.ExitStack() as stack:
        workers: Cluster | None = None
        if machine is None:
            workers = stack.enter_context(
                connect(cluster, study, device, dtype, deadline, progress)
            )
            machine, jobs = workers.machine, 1
        # before anything is written: a cell that can never run must not leave a store behind
        fit = fitting(study, machine)
        inputs = study.inputs()
        store.begin(usual_batch(store, machine, fit, batch, threads or 1))
        stack.callback(store.close)
        _refuse_other_inputs(store, inputs)
        if "inputs" not in store.attributes or not store.done().any():
            if store.attributes.get("inputs", inputs) != inputs:
                # no cell is done, but trainings may be under way: with what is no longer there
                shutil.rmtree(store.scratch, ignore_errors=True)
            store.remember(inputs=inputs)
        choices = choose(store, machine, fit, compiled, batch, threads)
        context = Context(
            device=machine.device,
            dtype=kind,
            compiled=choices["compiled"],
            deadline=deadline,
            scratch=store.scratch,
            models=saved,
        )
        _remember_origin(store, machine, inputs)
        if jobs is None:
            jobs = usual_jobs(study, machine.device, choices.get("threads"))
        note = _fill(store, context, choices, progress, go_on, jobs, workers)
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


def _remember_origin(store: Store, machine: Machine, inputs: dict[str, str]) -> None:
    made = {**machine.made, "wall_seconds": round(store.wall_seconds(), 2)}
    made |= {"inputs": inputs} if inputs else {}
    earlier = store.attributes.get("provenance", {}).get("earlier")
    store.remember(provenance={**made, "earlier": earlier} if earlier else made)


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
    store: Store,
    context: Context,
    choices: dict[str, Any],
    shown: bool,
    go_on: str,
    jobs: int,
    cluster: Cluster | None,
) -> str:
    """Run all pending cells; the text for a person when time ran out, else nothing."""
    before = int(store.done().sum())
    try:
        with contextlib.ExitStack() as stack:
            _fill_batches(store, context, choices, shown, jobs, cluster, stack)
    except OutOfTime:
        some = int(store.done().sum()) > before
        return _unfinished(store, "time is over", go_on, started=some)
    except KeyboardInterrupt as stop:
        error = Interrupted(_unfinished(store, "stopped", go_on))
        if isinstance(stop, Terminated):
            error.exit_code = OutOfTime.exit_code
        raise error from None
    except RunError as error:
        raise type(error)(_unfinished(store, str(error), go_on)) from error
    shutil.rmtree(store.scratch, ignore_errors=True)
    return ""


def _fill_batches(
    store: Store,
    context: Context,
    choices: dict[str, Any],
    shown: bool,
    jobs: int,
    cluster: Cluster | None,
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
    results = compute(study, store.grid, batches, context, jobs, choices.get("threads"), cluster)
    for runs, outputs in stack.enter_context(results):
        store.write(runs, outputs, time.monotonic() - begun)
        begun = time.monotonic()
        work += len(runs) * steps
        if report:  # (processes tell themselves how far they are, a little later)
            report.batch_done(work if jobs == 1 else 0)


def _unfinished(store: Store, why: str, go_on: str, started: bool = True) -> str:
    hint = f"; go on with: {go_on}" if go_on else ""
    try:
        done = store.done()
    except RunError:  # the connection is lost, and was told of
        return f"{why}{hint}"
    slow = "" if started else " (not one batch was through: give it more time)"
    if any(store.scratch.glob("*")):
        where = "beside it" if isinstance(store.path, Path) else f"in {store.scratch}"
        slow = f" (what was under way is kept {where})"
    return f"{why}: {done.sum()} of {len(done)} cells are stored in {store.path}{slow}{hint}"
