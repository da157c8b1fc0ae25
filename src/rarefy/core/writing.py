"""Files that are whole or not there: written under another name, flushed to the disk, renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to. When the block ends well the file takes its place, for
    good: a kill or a power cut leaves the old content or the new one. Else nothing has happened."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        flush(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    flush(path.parent)


def write_whole(path: Path, content: bytes | str) -> None:
    """Put ``content`` in the place of whatever is at ``path``."""
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def flush(path: Path) -> None:
    """Wait until the disk has it; a folder holds the names of its files."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot flush a folder
            os.fsync(handle)
    finally:
        os.close(handle)
