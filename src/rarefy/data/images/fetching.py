"""Official archives over the network: resumed where it broke off, checked, then put in place."""

from __future__ import annotations

import http.client
import re
import shutil
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from rarefy.core.errors import RunError
from rarefy.core.progress import Progress
from rarefy.core.version import __version__
from rarefy.data.images.listing import spell_bytes
from rarefy.data.images.part_file import PIECE, PartFile, disk_errors

TIMEOUT_SECONDS = 30.0
"""Without a single byte for so long, a connection is given up and another one made."""
WAITS_SECONDS = (0.5, 1.0, 2.0)
"""Before each further attempt; one that brought something starts the count again."""
MOST_ATTEMPTS = 100
AGAIN_CODES = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be another the next time."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on the network, its place below the data folder, and what it must be."""

    url: str
    path: str
    size: int
    sha256: str


class _Broken(Exception):
    """An attempt failed in a way that another may not."""


class _Hopeless(Exception):
    """The server says no."""


def fetch(
    remote: RemoteFile,
    folder: Path,
    progress: bool = True,
    waits: tuple[float, ...] = WAITS_SECONDS,
    timeout: float = TIMEOUT_SECONDS,
) -> Path:
    """Bring a file into the data folder and give its path; one that is there is left alone.

    Several processes may fetch the same file: one does, the others wait for it.
    """
    target = folder / remote.path
    if target.exists():
        return target
    with PartFile(target) as part:
        if target.exists():  # another process was quicker
            return target
        _check_space(remote, folder, len(part))
        resumed = len(part) > 0
        with _Bar(remote, len(part), progress) as bar:
            _download(remote, part, target, bar, waits, timeout)
            if part.sha256() != remote.sha256 and resumed:
                # what lay here may have been of another file
                part.clear()
                _download(remote, part, target, bar, waits, timeout)
        found = part.sha256()
        if found != remote.sha256:
            part.clear()
            raise RunError(
                f"{remote.url} is not the official file: SHA-256 {found}, not {remote.sha256}; "
                f"what came was deleted; {_by_hand(remote, target)}"
            )
        part.finish()
    return target


class _Bar:
    """A progress bar over bytes, or nothing."""

    def __init__(self, remote: RemoteFile, before: int, shown: bool) -> None:
        here = f", {spell_bytes(before)} already here" if before else ""
        title = f"{Path(remote.path).name} ({spell_bytes(remote.size)}{here})"
        self._progress = Progress(title, remote.size - before) if shown else None

    def __enter__(self) -> _Bar:
        if self._progress is not None:
            self._progress.__enter__()
        return self

    def __exit__(self, *ending: object) -> None:
        if self._progress is not None:
            self._progress.__exit__(*ending)  # type: ignore[arg-type]

    def advance(self, count: int) -> None:
        if self._progress is not None:
            self._progress.advance(count)


def _download(
    remote: RemoteFile,
    part: PartFile,
    target: Path,
    bar: _Bar,
    waits: tuple[float, ...],
    timeout: float,
) -> None:
    """Fill the part file to its full size, over as many connections as it takes."""
    failures, most = 0, len(part)
    for _ in range(MOST_ATTEMPTS):
        if len(part) == remote.size:
            return
        try:
            _attempt(remote, part, bar, timeout)
            continue
        except _Hopeless as error:
            reason = str(error)
            break
        except _Broken as error:
            reason = str(error)
        # a server that makes us start again and again brings nothing
        failures = 0 if len(part) > most else failures + 1
        most = max(most, len(part))
        if failures > len(waits):
            break
        time.sleep(waits[max(failures - 1, 0)] if waits else 0)
    kept = f"{spell_bytes(len(part))} are kept, the same command goes on; " if len(part) else ""
    raise RunError(f"cannot fetch {remote.url} ({reason}); {kept}{_by_hand(remote, target)}")


def _attempt(remote: RemoteFile, part: PartFile, bar: _Bar, timeout: float) -> None:
    """One connection: from where the part file ends, if the server can, else from the start."""
    have = len(part)
    if have > remote.size:
        part.clear()
        have = 0
    headers = {"User-Agent": f"rarefy/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(remote.url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            _check_answer(remote, part, answer, have)
            while len(part) <= remote.size:
                piece = answer.read(PIECE)
                if not piece:
                    break
                part.add(piece)
                bar.advance(len(piece))
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # nothing at that place: the part file is of something else
                part.clear()
                raise _Broken("HTTP 416") from None
            kind = _Broken if error.code in AGAIN_CODES else _Hopeless
            raise kind(f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _Broken(_reason(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(_reason(error)) from None
    if len(part) > remote.size:
        part.clear()
        raise _Hopeless(f"more than the official {spell_bytes(remote.size)} came")
    if len(part) < remote.size:
        raise _Broken("the connection was cut")


def _check_answer(
    remote: RemoteFile, part: PartFile, answer: http.client.HTTPResponse, have: int
) -> None:
    """Make the part file end where the answer begins, or refuse an answer of another length."""
    if answer.status == 206:
        place = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        if place is None or int(place[1]) != have or place[2] not in ("*", str(remote.size)):
            part.clear()
            raise _Broken("the server's file has another length; starting again")
        return
    if have:
        part.clear()  # the server cannot resume
    length = answer.headers.get("Content-Length")
    if length is not None and length.isdecimal() and int(length) != remote.size:
        raise _Hopeless(f"the server offers {length} bytes, the official file has {remote.size}")


def _check_space(remote: RemoteFile, folder: Path, have: int) -> None:
    with disk_errors(folder):
        free = shutil.disk_usage(folder).free
    if free < remote.size - have:
        raise RunError(
            f"not enough room in {folder}: {spell_bytes(free)} free, "
            f"{spell_bytes(remote.size - have)} needed; choose another folder with --data"
        )


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())[:100] or type(error).__name__


def _by_hand(remote: RemoteFile, target: Path) -> str:
    return f"without a network here, fetch it on another machine and put it at {target}"
