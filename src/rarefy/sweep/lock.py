"""One writer a store: a lock that the system drops by itself when its process dies."""

from __future__ import annotations

import os
from pathlib import Path

from rarefy.core.errors import UsageError

try:
    import fcntl
except ImportError:  # a system without POSIX locks: the user must see to it
    fcntl = None  # type: ignore[assignment]


class Lock:
    """The file holds the process id of the owner, for the message only. What counts is the lock
    on it: after a kill the file stays behind and the next process takes it over."""

    def __init__(self, path: Path, guarded: Path) -> None:
        self.path, self.guarded = path, guarded
        self._handle: int | None = None

    def acquire(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # the last owner may have removed the file between our open and our lock
                if os.path.exists(self.path) and os.path.samestat(
                    os.fstat(handle), os.stat(self.path)
                ):
                    break
            except BlockingIOError:
                owner = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
                os.close(handle)
                raise UsageError(
                    f"store {self.guarded} is being written by another process (pid {owner}); "
                    "wait for it or use another --out"
                ) from None
            os.close(handle)
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode("ascii"))
        self._handle = handle

    def release(self) -> None:
        if self._handle is not None:
            self.path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None
