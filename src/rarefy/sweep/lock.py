"""One writer per store: a lock that the system drops by itself when its process dies."""

from __future__ import annotations

import contextlib
import os
import socket
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from rarefy.core.errors import Busy
from rarefy.core.place import Place


class Lock:
    """The file names its owner, for the message only. What counts is the lock on it: after a kill
    the file stays behind and the next process takes it over."""

    def __init__(self, path: Path, guarded: Path) -> None:
        self.path, self.guarded = path, guarded
        self._lock = FileLock(path, timeout=0, thread_local=False)

    def acquire(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            owner = ""
            with contextlib.suppress(OSError):  # it has just been given back
                owner = self.path.read_text("utf-8", "replace").strip()
            raise busy(self.guarded, owner) from None
        with contextlib.suppress(OSError):  # a full disk is told by what is written next
            self.path.write_text(owner_line(os.getpid(), socket.gethostname(), now()))

    def check(self, ask: bool = True) -> None:
        """Whether it is still ours: always, as long as we live."""

    def release(self) -> None:
        if self._lock.is_locked:
            # while it is ours: a process that has opened it meanwhile sees that it is gone
            self.path.unlink(missing_ok=True)
            self._lock.release()


def owner_line(pid: object, host: object, since: object) -> str:
    return f"pid {pid} on {host} since {since}"


def now() -> str:
    return datetime.now().astimezone().isoformat(" ", "seconds")


def busy(guarded: Place, owner: str) -> Busy:
    return Busy(
        f"store {guarded} is being written by another process ({owner or 'unknown'}); "
        "wait for it or use another --out"
    )
