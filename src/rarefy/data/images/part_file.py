"""The unfinished file of a download: one writer at a time, kept for the next attempt."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from rarefy.core.errors import RunError

try:
    import fcntl
except ImportError:  # a system without POSIX locks: each process has a file of its own
    fcntl = None  # type: ignore[assignment]
LOCKS = fcntl is not None

PIECE = 1 << 20


class PartFile:
    """``target`` with ``.part`` behind it, locked while open. It becomes ``target`` in one step, so
    that a file of that name is always whole; after a kill, what had come is still here."""

    def __init__(self, target: Path, wait_seconds: float = 0.5) -> None:
        self.target = target
        mark = "" if LOCKS else f".{os.getpid()}"
        self.path = target.with_name(f"{target.name}{mark}.part")
        self._wait = wait_seconds
        self._handle: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Waits while another process is fetching the same file."""
        with disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            told = False
            while True:
                handle = open(self.path, "a+b")
                if not LOCKS or self._locked(handle):
                    break
                handle.close()
                if not told:
                    note = f"note: {self.target.name} is being fetched by another process; waiting"
                    print(note, file=sys.stderr)
                    told = True
                time.sleep(self._wait)
        self._handle = handle
        return self

    def _locked(self, handle: BinaryIO) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:  # the last owner may have renamed or removed it between our open and our lock
            return os.path.samestat(os.fstat(handle.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            if self._handle.seek(0, os.SEEK_END) == 0:
                self.path.unlink(missing_ok=True)
            self._handle.close()
            self._handle = None

    @property
    def handle(self) -> BinaryIO:
        assert self._handle is not None, "only within its with block"
        return self._handle

    def __len__(self) -> int:
        return self.handle.seek(0, os.SEEK_END)

    def add(self, piece: bytes) -> None:
        with disk_errors(self.path):
            self.handle.write(piece)
            self.handle.flush()  # a full disk is told now, and a kill loses nothing

    def clear(self) -> None:
        with disk_errors(self.path):
            self.handle.truncate(0)

    def sha256(self) -> str:
        hasher = hashlib.sha256()
        with disk_errors(self.path):
            self.handle.seek(0)
            while piece := self.handle.read(PIECE):
                hasher.update(piece)
        return hasher.hexdigest()

    def finish(self) -> None:
        """Give it its final name."""
        with disk_errors(self.path):
            os.fsync(self.handle.fileno())
            if not LOCKS:  # such systems do not rename what is open
                self.handle.close()
                self._handle = None
            os.replace(self.path, self.target)
        if self._handle is not None:
            # nothing is left under the old name
            self._handle.close()
            self._handle = None


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Whatever the file system complains about, in one line with the path."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot write {path} ({error.strerror or error}); free some space or choose another "
            "folder with --data, then the same command goes on"
        ) from None
