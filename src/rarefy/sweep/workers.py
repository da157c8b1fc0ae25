"""Who computes the batches of a run: this thread, one thread per core, several processes, or a
cluster (``cluster``)."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Experiment
from rarefy.core.errors import RunError
from rarefy.core.processes import ctrl_c_waits
from rarefy.core.settings import free_memory, prepare_cpu
from rarefy.core.threads import exactly
from rarefy.sweep.grid import Grid

if TYPE_CHECKING:
    from rarefy.sweep.cluster import Cluster

Computed = tuple[np.ndarray, dict[str, np.ndarray]]
REPORT_EVERY_SECONDS = 0.5
"""A process tells its progress at most so often: the messages would cost more than the work."""
ORPHAN_SECONDS = 3.0
"""For a training to reach the end of its update and to write its checkpoint."""
MEMORY_SHARE = 0.5
"""Of the free memory; the rest is for temporaries nobody counted, and for others."""
MOST_JOBS = 8
"""More processes than this are only started when asked for."""
_compiled_before: set[type[Experiment]] = set()


@contextlib.contextmanager
def compute(
    study: Experiment,
    grid: Grid,
    batches: list[np.ndarray],
    context: Context,
    jobs: int = 1,
    threads: int | None = 1,
    cluster: Cluster | None = None,
) -> Iterator[Iterator[Computed]]:
    """Batches with their outputs, in order of completion. Each is computed with so many
    ``threads``, whoever computes it (None: as many as there are)."""
    if cluster is not None:
        with cluster.compute(study, grid, batches, context, threads) as results:
            yield results
        return
    jobs = min(jobs, len(batches))
    if jobs > 1:
        with _by_processes(study, grid, batches, context, jobs, threads) as results:
            yield results
        return
    workers = min(threads_at_once(study, context.device, threads), len(batches))
    with exactly(threads) if threads else contextlib.nullcontext():
        if workers < 2:
            yield (_one_batch(study, grid, runs, context) for runs in batches)
            return
        with _by_threads(study, grid, batches, context, workers) as results:
            yield results


def usual_jobs(study: Experiment, device: torch.device, threads: int | None = 1) -> int:
    """Processes where nobody said how many: one per core on a CPU, where small operations only wait
    for each other when they share cores; on a GPU one, since it is not known how busy that is."""
    if not study.one_at_a_time or device.type != "cpu":
        return 1
    fitting = int(free_memory(device) * MEMORY_SHARE) // max(study.cost().bytes_per_cell, 1)
    return max(1, min(torch.get_num_threads() // (threads or 1), MOST_JOBS, fitting))


def threads_at_once(study: Experiment, device: torch.device, threads: int | None = 1) -> int:
    """Batches that run at once in this process: one per core on a CPU. Trainings of real networks
    cannot, they share torch's one random state."""
    if study.one_at_a_time or device.type != "cpu":
        return 1
    return max(1, torch.get_num_threads() // (threads or 1))


def _one_batch(study: Experiment, grid: Grid, runs: np.ndarray, context: Context) -> Computed:
    context.check_time()
    return runs, simulate(study, grid.cells(runs), context)


def simulate(study: Experiment, cells: Cells, context: Context) -> dict[str, np.ndarray]:
    """One batch; halved as often as the device runs out of memory."""
    try:
        outputs = study.simulate(cells, context)
        outputs = {name: np.asarray(values) for name, values in outputs.items()}
        outputs.setdefault(NONFINITE_STEP.name, np.full(len(cells), -1))
        return outputs
    except (RuntimeError, MemoryError) as error:
        if not _out_of_memory(error):
            raise
        if len(cells) == 1:
            raise RunError(f"a single cell of {study.name} does not fit: {error}") from error
    # out here the error is gone, and with it the tensors its frames held
    if context.device.type == "cuda":
        torch.cuda.empty_cache()
    rows = np.arange(len(cells))
    halves = [simulate(study, cells.take(half), context) for half in np.array_split(rows, 2)]
    return {name: np.concatenate([half[name] for half in halves]) for name in halves[0]}


def _out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return "allocate memory" in str(error)  # how torch reports it on a CPU


# ----------------------------------------------------------------------------------------- threads


@contextlib.contextmanager
def _by_threads(
    study: Experiment, grid: Grid, batches: list[np.ndarray], context: Context, workers: int
) -> Iterator[Iterator[Computed]]:
    """On a CPU each core takes whole batches, usually with one thread for their arithmetic: nothing
    waits at a barrier inside an operation, which costs little on a quiet machine and very much on a
    busy one."""
    stop = threading.Event()
    context = dataclasses.replace(context, stop=stop)
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(workers, initializer=_prepare_thread, initargs=(threads,))

    def results() -> Iterator[Computed]:
        waiting = list(batches)
        kind = type(study)
        if context.compiled and kind not in _compiled_before:  # compile once, not once a worker
            yield pool.submit(_one_batch, study, grid, waiting.pop(0), context).result()
            _compiled_before.add(kind)
        futures = [pool.submit(_one_batch, study, grid, runs, context) for runs in waiting]
        for future in as_completed(futures):
            yield future.result()

    try:
        yield results()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(threads)


def _prepare_thread(threads: int) -> None:
    torch.set_num_threads(threads)
    prepare_cpu()  # the flag belongs to a thread, not to the process


# --------------------------------------------------------------------------------------- processes


@contextlib.contextmanager
def _by_processes(
    study: Experiment,
    grid: Grid,
    batches: list[np.ndarray],
    context: Context,
    jobs: int,
    threads: int | None,
) -> Iterator[Iterator[Computed]]:
    """Small networks leave a GPU idle most of the time, and one process can only start one
    operation after the other: several processes share the device."""
    fresh = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    said, stop = fresh.Queue(), fresh.Event()
    # (the deadline goes along: the monotonic clock is one for all processes, and is never set)
    plain = dataclasses.replace(context, advance=_nothing, say=_nothing, stop=None)
    threads = threads or max(1, torch.get_num_threads() // jobs)
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=fresh,
        initializer=_prepare_process,
        initargs=(study, plain, threads, said, stop),
    )
    ended = threading.Event()
    reader = threading.Thread(target=_pass_on, args=(said, context, ended), daemon=True)
    reader.start()

    def results() -> Iterator[Computed]:
        with ctrl_c_waits():
            futures = [pool.submit(_in_process, runs, grid.cells(runs)) for runs in batches]
        first: BaseException | None = None
        for future in as_completed(futures):
            error = None if future.cancelled() else future.exception()
            if error is None and not future.cancelled():
                yield future.result()
            elif first is None and error is not None:
                # the others end at their next look at the clock; who is through by then counts
                first = error
                stop.set()
                for other in futures:
                    other.cancel()
        if isinstance(first, BrokenProcessPool):
            raise RunError(
                "a process ended without a word (out of memory, or killed); fewer --jobs need "
                "less memory"
            ) from first
        if first is not None:
            raise first

    try:
        yield results()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        ended.set()
        reader.join()
        said.close()


def _nothing(_: Any) -> None:
    return None


def _pass_on(said: Any, context: Context, ended: threading.Event) -> None:
    """Tell what the processes report to the progress bar of this one."""
    while True:
        try:
            amount, text = said.get(timeout=0.2)
        except queue.Empty:
            if ended.is_set():
                return
            continue
        if text:
            context.say(text)
        if amount:
            context.advance(amount)


class _Reports:
    """Collects progress in a process and sends it now and then."""

    def __init__(self, said: Any) -> None:
        self._said, self._amount, self._text, self._sent = said, 0.0, "", time.monotonic()

    def advance(self, amount: float) -> None:
        self._amount += amount
        if time.monotonic() - self._sent >= REPORT_EVERY_SECONDS:
            self.send()

    def say(self, text: str) -> None:
        self._text = text

    def send(self) -> None:
        self._said.put((self._amount, self._text))
        self._amount, self._text, self._sent = 0.0, "", time.monotonic()


_process: dict[str, Any] = {}


def _prepare_process(
    study: Experiment, context: Context, threads: int, said: Any, stop: Any
) -> None:
    # Ctrl-C reaches every process of a terminal: the first one asks the others to end in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # a batch system's end reaches all of them too: what is under way gets its checkpoint
    signal.signal(signal.SIGTERM, lambda number, frame: _end_soon(stop))
    _process["limits"] = exactly(threads)
    _process["limits"].__enter__()  # for as long as it lives
    prepare_cpu()
    threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()
    reports = _Reports(said)
    _process["study"], _process["reports"] = study, reports
    _process["context"] = dataclasses.replace(
        context, advance=reports.advance, say=reports.say, stop=stop
    )


def _end_with_parent(stop: Any) -> None:
    """Nobody is left to store what this process computes: it keeps its checkpoint and ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    stop.set()
    time.sleep(ORPHAN_SECONDS)
    os._exit(1)


def _end_soon(stop: Any) -> None:
    """At the next look at the clock; by force if there is none."""

    def end() -> None:
        stop.set()
        time.sleep(ORPHAN_SECONDS)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _in_process(runs: np.ndarray, cells: Cells) -> Computed:
    study, context = _process["study"], _process["context"]
    context.check_time()
    try:
        return runs, simulate(study, cells, context)
    finally:
        _process["reports"].send()
