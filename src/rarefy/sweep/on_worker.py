"""What a Dask worker does for a run: say what it is, and compute one batch at a time.

The scheduler never loads any of this: it has rarefy's functions and studies as bytes (``call``).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Experiment
from rarefy.core.errors import OutOfTime, RarefyError, RunError
from rarefy.core.provenance import provenance
from rarefy.core.settings import can_compile, free_memory, resolve_device
from rarefy.core.threads import exactly
from rarefy.core.version import __version__
from rarefy.sweep.process_state import prepared_cpu
from rarefy.sweep.workers import simulate

Facts = dict[str, Any]


class _Call:
    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.parts = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.parts


def call(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Bytes for which ``pickle.loads`` gives what the call gives. A scheduler needs neither rarefy
    nor torch to pass them on, and a worker without them fails with an ordinary error."""
    import cloudpickle

    return cloudpickle.dumps(_Call(function, *arguments))


def facts(study: Experiment, dtype: str, device: str) -> Facts:
    """What this worker is. That it could load ``study`` is one of the answers."""
    where = resolve_device(device)
    memory = socket.gethostname()
    if where.type == "cuda":
        memory = str(torch.cuda.get_device_properties(where).uuid)
    return {
        "made": provenance(where, dtype, 0.0),
        "memory": memory,
        "free": free_memory(where),
        "compiles": can_compile(where),
    }


@dataclass(frozen=True)
class Order:
    """What the batches of a run have in common. It goes along with each: about a kilobyte, where
    an object of its own would tie all batches to the workers that have a copy."""

    run: str
    study: Experiment
    context: Context
    threads: int | None
    inputs: dict[str, str]
    data: str | None
    """The folder of data sets at home, used where it is here too."""
    token: Path | None
    """A file beside the checkpoints at home: seen here, they can be used here."""
    rarefy: str = __version__


def compute_batch(order: Order, cells: Cells) -> dict[str, np.ndarray]:
    """The outputs of a batch, with the threads and the arithmetic of a run at home."""
    stop = _Unwanted()
    try:
        with _room.enter(order.threads, order.study.one_at_a_time), prepared_cpu():
            scratch = order.token.parent if order.token and order.token.exists() else None
            context = dataclasses.replace(order.context, stop=stop, scratch=scratch)
            context.check_time()
            _check(order)
            return simulate(order.study, cells, context)
    except OutOfTime:
        raise
    except RarefyError as error:
        raise RunError(f"on worker {stop.worker.address}: {error}") from None


_checked: set[str] = set()


def _check(order: Order) -> None:
    """Refuse what would give other numbers than at home; once per run."""
    if order.run in _checked:
        return
    if order.rarefy != __version__:
        raise RunError(f"rarefy {__version__} is there, the run is of {order.rarefy}")
    if resolve_device("auto").type == "cpu" and order.context.device.type == "cuda":
        raise RunError("no CUDA device is there, though the worker offers GPU=1")
    if order.context.compiled and not can_compile(order.context.device):
        raise RunError("kernels cannot be compiled there, as the run's others are")
    if order.data and Path(order.data).is_dir():
        os.environ["RAREFY_DATA"] = order.data
    for name, content in order.study.inputs().items():
        if order.inputs.get(name) != content:
            raise RunError(f"{name} is {content} there, not {order.inputs.get(name)}")
    _checked.add(order.run)


class _Unwanted(threading.Event):
    """Set when nobody waits for this batch any more: cancelled, its parent or scheduler gone, or
    the worker about to end."""

    def __init__(self) -> None:
        from distributed.worker import get_worker, thread_state

        super().__init__()
        self.worker, self._key = get_worker(), thread_state.key

    def is_set(self) -> bool:
        task = self.worker.state.tasks.get(self._key)
        ending = self.worker.status.name in ("closing", "closed", "failed", "stopping")
        return ending or task is None or task.state == "cancelled"


class _Room:
    """The batches that are in this process now. The number of threads is the process's, so that
    batches with another one wait; a training waits for all, it has torch's one random state."""

    def __init__(self) -> None:
        self._door = threading.Condition()
        self._rule: tuple[int | None, bool] = (None, False)
        self._limits = contextlib.ExitStack()
        self.inside = 0

    @contextlib.contextmanager
    def enter(self, threads: int | None, alone: bool) -> Iterator[None]:
        with self._door:
            self._door.wait_for(
                lambda: not self.inside or (not alone and self._rule == (threads, False))
            )
            if threads and not self.inside:
                self._limits.enter_context(exactly(threads))
            self._rule = threads, alone
            self.inside += 1
        try:
            if threads:
                torch.set_num_threads(threads)  # (each thread has a number of its own)
            yield
        finally:
            with self._door:
                self.inside -= 1
                if not self.inside:
                    self._limits.close()
                self._door.notify_all()


_room = _Room()


async def rest(seconds: float) -> None:
    """Wait until what was cancelled has ended, with its checkpoint, but not for ever."""
    end = time.monotonic() + seconds
    while _room.inside and time.monotonic() < end:
        await asyncio.sleep(0.05)
