"""Readers under fire: what a reader may do with the bytes of a stranger, and ways to damage a file.

A *target* writes bytes where a reader expects them and calls it. Allowed are a value, or an error
of ours in one printable line that is not long and names the file. All else is a finding: another
exception, a warning, a line of a log that is no line, too much time or memory, a file written
elsewhere, a program started. Short runs (``tests/test_fuzz.py``) damage valid files by hypothesis,
long ones (``tests/heavy/test_fuzz.py``) by atheris, which looks for new paths through the code.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rarefy.core.errors import LONGEST, RarefyError
from rarefy.core.text import one_line

SECONDS, MEGABYTES = 10.0, 400
"""Of one call, of the processor; more than the process had before it (an image may have 89
million pixels)."""
FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""To work in: no disk is waited for."""
WORDS = (
    *(b"null", b"true", b"-1", b"1e999", b"NaN", b"[]", b"{}", b'""', b"\\ud800", b"\xff\xfe"),
    *(b"../../x", b"/x", b"\x1b]0;x\x07\x1b[2J", b"\n", b"\r\n", b"<script>", b"\xe2\x80\xae"),
    *(b"9" * 20, b"9" * 5000, b"-" + b"9" * 400, b"[" * 5000, b'{"a":' * 2000, b"=1+1"),
    *(b"\xff" * 4, b"\xff" * 8, b"\x7f\xff\xff\xff", b"\x00\x00\x00\x80", b"\x00" * 16),
)
"""What is put into a file or over a part of it: numbers without end, depth, marks, odd text."""


@dataclass(frozen=True)
class Target:
    """``read`` gets bytes and an empty folder; ``named``: the part of the path that errors name."""

    name: str
    read: Callable[[bytes, Path], object]
    seeds: Callable[[], list[bytes]]
    named: str = ""
    runs: int = 25
    """In the suite; those that are slow have fewer."""


def file(
    name: str,
    path: str,
    read: Callable[[Path], object],
    seeds: Callable[[], list[bytes]],
    wrap: Callable[[bytes], bytes] = bytes,
    beside: Callable[[Path], object] = lambda folder: None,
    named: str = "",
    runs: int = 25,
) -> Target:
    """A reader of one file; ``wrap``: what is put around the bytes, such as a checksum that fits;
    ``beside``: what else lies in the folder."""

    def run(content: bytes, folder: Path) -> object:
        beside(folder)
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(wrap(content))
        return read(place)

    return Target(name, run, seeds, named or path.partition("/")[0], runs)


def finding(target: Target, content: bytes, folder: Path) -> str:
    """What is wrong with how a reader took these bytes; nothing if all is well."""
    inside = folder / "inside"
    inside.mkdir()
    said: list[str] = []
    before, started = _memory(), time.process_time()
    with _lines_of_log(said), _watched(folder) as done, warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        try:
            target.read(content, inside)
        except RarefyError as error:
            said.append(str(error))
            if target.named not in str(error):
                return f"does not name {target.named}: {str(error)[:200]!r}"
        except Exception as error:
            places = traceback.extract_tb(error.__traceback__)
            ours = [
                f"{Path(at.filename).name}:{at.lineno}" for at in places if "rarefy" in at.filename
            ]
            return f"{type(error).__name__} at {' '.join(ours[-2:])}: {str(error)[:200]!r}"
    if w:
        return f"warns: {w[0].category.__name__} {str(w[0].message)[:200]!r}"
    if (seconds := time.process_time() - started) > SECONDS:
        return f"took {seconds:.0f} s"
    if (more := (_memory(peak=True) - before) / 1e6) > MEGABYTES:
        return f"took {more:.0f} MB"
    if done or sorted(os.listdir(folder)) != ["inside"]:
        return f"did outside: {done or os.listdir(folder)}"
    for line in said:
        if one_line(line) != line or len(line) > LONGEST:
            return f"says no short line ({len(line)} letters): {line[:200]!r}"
    return ""


# ------------------------------------------------------------------------------------------- damage


def damaged(seeds: list[bytes], choose: Callable[[int], int]) -> bytes:
    """A valid file after one to four kinds of damage; ``choose(n)`` is a number below n."""
    content = seeds[choose(len(seeds))]
    for _ in range(1 + choose(4)):
        start, length = choose(len(content) + 1), (0, 1, 2, 4, 8, 60)[choose(6)]
        here, kind = content[start : start + length], choose(7)
        if kind == 0:  # cut short
            content, length = content[:start], 0
            put = b""
        elif kind == 1:  # a byte is another
            put = bytes([here[0] ^ (1 + choose(255)), *here[1:]]) if here else b""
        elif kind in (2, 3):  # a word in between, or in the place of what was there
            put = WORDS[choose(len(WORDS))]
            length = 0 if kind == 2 else max(length, len(put) % 100)
        else:  # twice, zeros, nothing
            put = (here * 2, bytes(len(here)), b"")[kind - 4]
        content = content[:start] + put + content[start + length :]
    return content


# ----------------------------------------------------------------------------------------- watching

_STARTING = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
_CHANGING = (
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.symlink",
    "os.link",
    "os.truncate",
)
_at: list[tuple[Path, list[str]]] = []
"""The folder that is watched now, and what was done outside it. A hook cannot be taken away."""


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _at:
        return
    folder, done = _at[-1]
    if event in _STARTING:
        done.append(f"{event} {arguments[:1]}")
    elif event == "open":
        path, mode, flags = arguments
        if not isinstance(path, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            _outside(path, folder, done, f"wrote {path!r}")
    elif event in _CHANGING:
        at = arguments[-1]  # (a name may be relative to an open folder)
        start = os.readlink(f"/proc/self/fd/{at}") if isinstance(at, int) and at > 2 else ""
        for path in arguments[:2]:
            if isinstance(path, str | bytes):
                named = os.path.join(start, os.fsdecode(path))
                _outside(named, folder, done, f"{event} {named!r}")


def _outside(path: Any, folder: Path, done: list[str], what: str) -> None:
    real = Path(os.path.realpath(os.fsdecode(path)))
    if "__pycache__" not in real.parts and str(real) != os.devnull:
        if not real.is_relative_to(os.path.realpath(folder)):
            done.append(what)


@cache
def _hook_once() -> None:
    sys.addaudithook(_hook)


@contextmanager
def _watched(folder: Path) -> Iterator[list[str]]:
    _hook_once()
    done: list[str] = []
    _at.append((folder, done))
    try:
        yield done
    finally:
        _at.pop()


@contextmanager
def _lines_of_log(said: list[str]) -> Iterator[None]:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    log, handler = logging.getLogger("rarefy"), Handler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _memory(peak: bool = False) -> float:
    """Bytes of this process, and from then on its peak; 0 where Linux does not say."""
    try:
        if not peak:
            Path("/proc/self/clear_refs").write_text("5")
        name = "VmHWM:" if peak else "VmRSS:"
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(name))
    except OSError:
        return 0.0
