"""One writer per store: a lock that the system drops by itself when its process dies."""

from __future__ import annotations

import contextlib
import os
import socket
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from rarefy.core.errors import Busy


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
            raise Busy(
                f"store {self.guarded} is being written by another process ({owner or 'unknown'}); "
                "wait for it or use another --out"
            ) from None
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        with contextlib.suppress(OSError):  # a full disk is told by what is written next
            self.path.write_text(f"pid {os.getpid()} on {socket.gethostname()} since {since}")

    def release(self) -> None:
        if self._lock.is_locked:
            # while it is ours: a process that has opened it meanwhile sees that it is gone
            self.path.unlink(missing_ok=True)
            self._lock.release()
