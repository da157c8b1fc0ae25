"""Batches computed by the workers of a Dask cluster, written by this process alone.

Only so many batches are under way as keep the workers busy: that much a lost scheduler or a killed
parent costs. What a lost worker had is computed again by the others.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import queue
import sys
import time
import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rarefy.core.contracts import Context, Experiment
from rarefy.core.errors import OutOfTime, RunError, SchedulerLost
from rarefy.sweep.choices import Place
from rarefy.sweep.grid import Grid
from rarefy.sweep.on_worker import Order, call, compute_batch, rest
from rarefy.sweep.workers import ORPHAN_SECONDS, Computed

LOOK_SECONDS = 0.5
"""Between two looks at the clock and, four times as long, at who is there."""
RETRIES = 2
"""Of a batch whose workers were killed (more often than Dask allows) or that met an OSError."""
AHEAD = 2
"""Batches per thread of a worker: one is computed, one waits. Of whole trainings none waits."""
FETCH_SECONDS = 60.0
"""For a result to arrive; then it is computed again."""


@dataclass(frozen=True)
class Cluster:
    """A cluster whose workers have been looked at."""

    client: Any
    address: str
    place: Place

    @contextlib.contextmanager
    def compute(
        self,
        study: Experiment,
        grid: Grid,
        batches: list[np.ndarray],
        context: Context,
        threads: int | None,
    ) -> Iterator[Iterator[Computed]]:
        """As ``rarefy.sweep.workers.compute``."""
        with self._token(study, context.scratch) as token:
            plain = Context(device=context.device, dtype=context.dtype, compiled=context.compiled)
            data = os.environ.get("RAREFY_DATA")
            order = Order(uuid.uuid4().hex, study, plain, threads, study.inputs(), data, token)
            under_way = _UnderWay(self, order, grid, context)
            try:
                yield under_way.results(batches)
            finally:
                under_way.stop()

    @contextlib.contextmanager
    def _token(self, study: Experiment, scratch: Path | None) -> Iterator[Path | None]:
        """A file by which workers know that they see the checkpoints of this machine."""
        if scratch is None or not study.one_at_a_time:
            yield None
            return
        scratch.mkdir(parents=True, exist_ok=True)
        token = scratch.absolute() / "seen-by-workers"
        token.touch()
        try:
            if not all(self.client.run(os.path.exists, str(token), on_error="return").values()):
                print(
                    "note: workers do not see the folder of the store: a training that is "
                    "interrupted starts over",
                    file=sys.stderr,
                )
            yield token
        finally:
            token.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                scratch.rmdir()  # (unless a checkpoint is in it)


class _UnderWay:
    """The batches of a run that are with the workers."""

    def __init__(self, cluster: Cluster, order: Order, grid: Grid, context: Context) -> None:
        self.client, self.address = cluster.client, cluster.address
        self.order, self.grid, self.context = order, grid, context
        self.sent: dict[str, tuple[Any, np.ndarray, int]] = {}
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers, self._most, self._looked = 1, 0, -math.inf

    def results(self, batches: list[np.ndarray]) -> Iterator[Computed]:
        waiting, failure = deque(batches), None
        begun, cells = time.monotonic(), 0
        while waiting or self.sent:
            try:
                if failure is None:
                    self.context.check_time()
                    with self._scheduler():
                        while waiting and len(self.sent) < self._room():
                            self._send(waiting.popleft())
                future = self.done.get(timeout=LOOK_SECONDS if failure is None else 0)
                _, runs, tries = self.sent.pop(future.key)
                outputs = self._outputs(future, runs, tries)
            except queue.Empty:
                if failure is not None:
                    break
                continue
            except Exception as error:  # whoever is through by now still counts
                failure = failure or error
                continue
            if outputs is not None:
                cells += len(runs)
                pace = cells / (time.monotonic() - begun)
                self.context.say(f"{count(self._workers)}, {pace:.3g} cells/s")
                yield runs, outputs
        if failure is not None:
            raise failure

    def stop(self) -> None:
        """Give up what is still with the workers, and let them end in order."""
        left = [future for future, _, _ in self.sent.values()]
        self.sent.clear()
        if left and self.client.status == "running":
            with contextlib.suppress(Exception):  # (a scheduler that is lost has cancelled them)
                self.client.cancel(left, force=True)
                self.client.run(rest, ORPHAN_SECONDS, on_error="ignore")

    def _room(self) -> int:
        """The most batches that may be under way, by the workers that are there now."""
        if time.monotonic() - self._looked > 4 * LOOK_SECONDS:
            threads, before = self.client.nthreads(), self._workers
            self._workers, self._looked = len(threads), time.monotonic()
            if before and not threads:
                print(f"note: no worker is left at {self.address}; waiting", file=sys.stderr)
            at_once = sum(threads.values()) if self._on_cpu else len(threads)
            self._most = at_once * (1 if self.order.study.one_at_a_time else AHEAD)
        return self._most

    @property
    def _on_cpu(self) -> bool:
        return self.context.device.type == "cpu"

    def _send(self, runs: np.ndarray, tries: int = 0) -> None:
        batch = call(compute_batch, self.order, self.grid.cells(runs))
        key = f"{self.order.study.name}-{uuid.uuid4().hex}"
        offered = None if self._on_cpu else {"GPU": 1}
        future = self.client.submit(pickle.loads, batch, key=key, pure=False, resources=offered)
        self.sent[key] = future, runs, tries
        future.add_done_callback(self.done.put)

    def _outputs(self, future: Any, runs: np.ndarray, tries: int) -> dict[str, np.ndarray] | None:
        """Of a batch that has ended; nothing where it was sent once more."""
        from distributed import KilledWorker

        with self._scheduler():
            if future.status == "finished":
                with contextlib.suppress(TimeoutError):  # its worker is gone, and the result
                    return future.result(timeout=FETCH_SECONDS)
            if future.status != "error":
                if future.cancelled():
                    raise ConnectionError("cancelled there")
                self._send(runs, tries)
                return None
            error = future.exception()
            if isinstance(error, KilledWorker | OSError | OutOfTime) and tries < RETRIES:
                self._send(runs, tries + 1)
                return None
        if isinstance(error, KilledWorker):
            raise RunError(
                f"a batch was lost with its worker {(RETRIES + 1) * (error.allowed_failures + 1)} "
                "times (out of memory, or killed; a batch system's limit needs dask worker "
                "--lifetime)"
            )
        if isinstance(error, ImportError):
            raise RunError(f"a worker cannot load the run ({line(error)})")
        raise error

    @contextlib.contextmanager
    def _scheduler(self) -> Iterator[None]:
        """Around every word with the scheduler: it may be gone."""
        from distributed import CancelledError
        from distributed.client import ClosedClientError

        try:
            yield
        except (OSError, CancelledError, ClosedClientError) as error:
            raise SchedulerLost(
                f"the scheduler at {self.address} was lost ({line(error)})"
            ) from None


def count(workers: int) -> str:
    """In words."""
    return f"{workers} worker{'s' * (workers != 1)}"


def line(error: BaseException) -> str:
    """An error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
