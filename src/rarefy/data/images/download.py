"""Official files over the network: resumed where a download broke off, checked, then put in place.

(``torch.hub.download_url_to_file`` checks and replaces too, but begins anew after every cut.)
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rarefy.core.errors import RunError
from rarefy.core.progress import Progress
from rarefy.core.version import __version__
from rarefy.data.images.listing import spell_bytes

try:
    import fcntl
except ImportError:  # a system without POSIX locks: each process has a file of its own
    fcntl = None  # type: ignore[assignment]
LOCKS = fcntl is not None
PIECE = 1 << 20
TIMEOUT_SECONDS = 30.0
"""Without a single byte for so long, a connection is given up and another one made."""
WAITS_SECONDS = (0.5, 1.0, 2.0)
"""Before each further attempt; one that brought something starts the count again."""
MOST_ATTEMPTS = 100
LOCK_SECONDS = 0.5
AGAIN_CODES = (408, 416, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be another the next time."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on the network, its place below the data folder, and what it must be."""

    url: str
    path: str
    size: int
    sha256: str


class _Failed(Exception):
    """An attempt failed. ``again``: another may not; ``clear``: what has come is of no use."""

    def __init__(self, reason: str, again: bool = True, clear: bool = False) -> None:
        super().__init__(reason)
        self.again, self.clear = again, clear


def fetch(
    remote: RemoteFile,
    folder: Path,
    progress: bool = True,
    waits: tuple[float, ...] = WAITS_SECONDS,
    timeout: float = TIMEOUT_SECONDS,
) -> Path:
    """Bring a file into the data folder and give its path; one that is there is left alone.

    What has come lies in ``PATH.part``, also after a kill, and gets its name in one step: a file of
    that name is always whole. Several processes may fetch the same file: one does, others wait.
    """
    target = folder / remote.path
    mark = "" if LOCKS else f".{os.getpid()}"
    path = target.with_name(f"{target.name}{mark}.part")
    if target.exists():
        return target
    with _disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _only_writer(path) as part:
            if not target.exists():  # (another process may have been quicker)
                _fill(remote, part, target, progress, waits, timeout)
                os.fsync(part.fileno())
                if not LOCKS:  # such systems do not rename what is open
                    part.close()
                os.replace(path, target)
    return target


@contextmanager
def _only_writer(path: Path) -> Iterator[BinaryIO]:
    """The part file, locked; an empty one is removed in the end."""
    told = False
    while True:
        part = open(path, "a+b")
        if not LOCKS or _locked(part, path):
            break
        part.close()
        if not told:
            name = path.name.removesuffix(".part")
            print(f"note: {name} is being fetched by another process; waiting", file=sys.stderr)
            told = True
        time.sleep(LOCK_SECONDS)
    try:
        yield part
    finally:
        with closing(part):
            if not part.closed and _size(part) == 0:
                path.unlink(missing_ok=True)


def _locked(part: BinaryIO, path: Path) -> bool:
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # the last owner may have renamed or removed it between our open and our lock
        return os.path.samestat(os.fstat(part.fileno()), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return False


def _fill(
    remote: RemoteFile,
    part: BinaryIO,
    target: Path,
    progress: bool,
    waits: tuple[float, ...],
    timeout: float,
) -> None:
    """Until the part file is the official one."""
    have = _size(part)
    free = shutil.disk_usage(target.parent).free
    if free < remote.size - have:
        raise RunError(
            f"not enough room in {target.parent}: {spell_bytes(free)} free, "
            f"{spell_bytes(remote.size - have)} needed; choose another folder with --data-folder"
        )
    by_hand = f"without a network here, fetch it on another machine and put it at {target}"
    here = f", {spell_bytes(have)} already here" if have else ""
    title = f"{target.name} ({spell_bytes(remote.size)}{here})"
    bar = Progress(title, remote.size - have) if progress else nullcontext()
    with bar as shown:
        advance = (lambda count: None) if shown is None else shown.advance
        _download(remote, part, advance, waits, timeout, by_hand)
        found = _sha256(part)
        if found != remote.sha256 and have:  # what lay here may have been of another file
            part.truncate(0)
            _download(remote, part, advance, waits, timeout, by_hand)
            found = _sha256(part)
    if found != remote.sha256:
        part.truncate(0)
        raise RunError(
            f"{remote.url} is not the official file: SHA-256 {found}, not {remote.sha256}; "
            f"what came was deleted; {by_hand}"
        )


def _download(
    remote: RemoteFile,
    part: BinaryIO,
    advance: Callable[[int], None],
    waits: tuple[float, ...],
    timeout: float,
    by_hand: str,
) -> None:
    """Fill the part file to its full size, over as many connections as it takes."""
    failures, most, reason = 0, _size(part), ""
    for _ in range(MOST_ATTEMPTS):
        if _size(part) == remote.size:
            return
        try:
            _attempt(remote, part, advance, timeout)
            continue
        except _Failed as error:
            reason, again = str(error), error.again
            if error.clear:
                part.truncate(0)
        # a server that makes us start again and again brings nothing
        failures = 0 if _size(part) > most else failures + 1
        most = max(most, _size(part))
        if not again or failures > len(waits):
            break
        time.sleep(waits[max(failures - 1, 0)] if waits else 0)
    have = _size(part)
    kept = f"{spell_bytes(have)} are kept, the same command goes on; " if have else ""
    raise RunError(f"cannot fetch {remote.url} ({reason}); {kept}{by_hand}")


def _attempt(
    remote: RemoteFile, part: BinaryIO, advance: Callable[[int], None], timeout: float
) -> None:
    """One connection: from where the part file ends, if the server can, else from the start."""
    if _size(part) > remote.size:
        part.truncate(0)
    have = _size(part)
    headers = {"User-Agent": f"rarefy/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with _network_errors():
        answer = urllib.request.urlopen(
            urllib.request.Request(remote.url, headers=headers), timeout=timeout
        )
    with answer:
        if answer.status == 206:
            place = answer.headers.get("Content-Range", "")
            if not re.fullmatch(rf"bytes {have}-\d+/({remote.size}|\*)", place):
                raise _Failed("the server's file has another length; starting again", clear=True)
        else:
            if have:  # the server cannot resume
                part.truncate(0)
            length = answer.headers.get("Content-Length", "")
            if length.isdecimal() and int(length) != remote.size:
                words = f"the server offers {length} bytes, the official file has {remote.size}"
                raise _Failed(words, again=False)
        while _size(part) <= remote.size:
            with _network_errors():
                piece = answer.read(PIECE)
            if not piece:
                break
            part.write(piece)
            part.flush()  # a full disk is told now, and a kill loses nothing
            advance(len(piece))
    if _size(part) > remote.size:
        words = f"more than the official {spell_bytes(remote.size)} came"
        raise _Failed(words, again=False, clear=True)
    if _size(part) < remote.size:
        raise _Failed("the connection was cut")


@contextmanager
def _network_errors() -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        with error:
            # 416: nothing at that place, the part file is of something else
            reason = f"HTTP {error.code} {error.reason}"
            raise _Failed(reason, error.code in AGAIN_CODES, clear=error.code == 416) from None
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, TimeoutError):
            raise _Failed("timed out") from None
        words = getattr(cause, "strerror", None) or " ".join(str(cause).split())[:100]
        raise _Failed(words or type(cause).__name__) from None


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Whatever the file system complains about, in one line with the path."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot write {path} ({error.strerror or error}); free some space or choose another "
            "folder with --data-folder, then the same command goes on"
        ) from None


def _size(part: BinaryIO) -> int:
    return part.seek(0, os.SEEK_END)


def _sha256(part: BinaryIO) -> str:
    hasher = hashlib.sha256()
    part.seek(0)
    while piece := part.read(PIECE):
        hasher.update(piece)
    return hasher.hexdigest()
