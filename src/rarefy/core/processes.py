"""Starting further processes, without importing anything that takes seconds."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker


@contextlib.contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Processes that are started in here begin with Ctrl-C held back, until they ignore it: one
    that is still importing would print where it was."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # (which lets Ctrl-C through again, the first time)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
