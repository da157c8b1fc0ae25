"""What a run changes of the process it is in, and gives back."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import torch

from rarefy.core.errors import Terminated
from rarefy.core.settings import keep_freed_memory, prepare_cpu


@contextlib.contextmanager
def prepared_cpu() -> Iterator[None]:
    """The caller's own arithmetic must find its denormal numbers again afterwards."""
    had_denormals = sys.float_info.min / 2 > 0
    prepare_cpu()
    keep_freed_memory()
    try:
        yield
    finally:
        if had_denormals:
            torch.set_flush_denormal(False)


@contextlib.contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Being asked to end (a batch system's limit) stops a run as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def stop(number: int, frame: object) -> None:
        raise Terminated

    before: Any = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
