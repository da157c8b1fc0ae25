"""One writer per store where files cannot be locked: a small object that its holder renews.

Who it belongs to is decided by its random token alone. It is written only where there is none, or
in the place of one that is over: not renewed for its time and a margin, by the clock of the service
(times of one clock are compared, ours does not count), or of a process of this machine that is no
more. A holder that could not renew it in time stops by its own clock, earlier than anybody may take
it over. Before every batch, and again before that counts as done, the token is read once more.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from rarefy.core.errors import RunError
from rarefy.core.place import Remote
from rarefy.core.text import one_line
from rarefy.core.writing import runs
from rarefy.sweep.lock import busy, now, owner_line

SECONDS = 60.0
"""A lease that is not renewed for so long is lost."""
RENEWED_EVERY = 15.0
MARGIN = 15.0
"""Between that and the moment from which somebody else may have it."""
SETTLING = 2.0
"""Where two could write it at once, the one that is read after this wait has it."""


class Lease:
    """As ``Lock``, for a store at an address."""

    def __init__(self, path: Remote, guarded: Remote) -> None:
        self.path, self.guarded = path, guarded
        self._token = self._since = self._lost = ""
        self._until = 0.0
        self._ended, self._renewing = threading.Event(), threading.Thread()

    def acquire(self) -> None:
        self._token, self._since, self._lost = secrets.token_hex(8), now(), ""
        try:
            self._take()
        except BaseException:
            self.release()
            raise
        self._renewing = threading.Thread(target=self._renew, daemon=True)
        self._renewing.start()

    def _take(self) -> None:
        began, tag = _clock(), self.path.tag()
        found = self._read()
        if found is not None and not self._is_over(found):
            raise busy(self.guarded, _owner(found))
        # (refused where somebody was faster, or the answer to our first attempt was lost)
        gone = [FileNotFoundError] if found is not None else []
        with contextlib.suppress(FileExistsError, *gone):
            self.path.write_bytes(self._content(), new=found is None, instead_of=tag)
        if found is not None or not self._is_exclusive():
            time.sleep(SETTLING)
        found = self._read() or {}
        if found.get("token") != self._token:
            raise busy(self.guarded, _owner(found))
        self._until, self._ended = began + SECONDS, threading.Event()

    def check(self, ask: bool = True) -> None:
        """Raise if it is no longer ours; ``ask``: the service, not only our clock."""
        if ask and not self._lost and _clock() < self._until:
            self._see(self._read())
        if not self._lost and _clock() >= self._until:
            self._lost = f"could not be renewed for {SECONDS:g} s"
        if self._lost:
            raise RunError(
                f"store {self.guarded}: the lease {self._lost}; nothing more is written, "
                "what was finished is kept"
            )

    def release(self) -> None:
        if self._token:
            self._ended.set()
            if self._renewing.is_alive():
                self._renewing.join()  # or it would write once more what is removed here
            with contextlib.suppress(OSError):  # without a connection it runs out by itself
                if (self._read() or {}).get("token") == self._token:
                    self.path.unlink(missing_ok=True)
            self._token = ""

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED_EVERY) and not self._lost and _clock() < self._until:
            with contextlib.suppress(OSError):  # another attempt follows
                began, tag = _clock(), self.path.tag()
                self._see(self._read())
                if not self._lost and _clock() < self._until:
                    self.path.write_bytes(self._content(), instead_of=tag)
                    self._until = began + SECONDS

    def _see(self, found: dict[str, Any] | None) -> None:
        if found is None:
            self._lost = "was removed"
        elif found.get("token") != self._token:
            self._lost = f"was taken over by another process ({_owner(found)})"

    def _read(self) -> dict[str, Any] | None:
        """What the lease says; nothing ({}) if that cannot be read, None where there is none."""
        try:
            told = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}

    def _content(self) -> bytes:
        until = datetime.now().astimezone() + timedelta(seconds=SECONDS)
        told = {"host": socket.gethostname(), "pid": os.getpid(), "since": self._since}
        told |= {"until": until.isoformat(" ", "seconds"), "machine": _machine()}
        return json.dumps({**told, "token": self._token}).encode()

    def _is_exclusive(self) -> bool:
        """Whether the service refuses to write once more where something is."""
        try:
            self.path.write_bytes(self._content(), new=True)
        except FileExistsError:
            return True
        return False

    def _is_over(self, found: dict[str, Any]) -> bool:
        if found.get("machine") == _machine() != "" and not _is_alive(found.get("pid")):
            return True
        probe = self.path.with_name(f"{self.path.name}.{self._token}")
        probe.write_bytes(b"")
        try:
            written, today = self.path.modified(), probe.modified()
        except FileNotFoundError:  # it has just been given back: the next attempt gets it
            return False
        finally:
            probe.unlink(missing_ok=True)
        if written is None or today is None:  # a service that keeps no times
            with contextlib.suppress(ValueError, TypeError):
                late = datetime.now(UTC) - datetime.fromisoformat(str(found.get("until")))
                return late.total_seconds() > MARGIN
            return False
        return (today - written).total_seconds() > SECONDS + MARGIN


def _owner(found: dict[str, Any]) -> str:
    if not {"pid", "host", "since"} <= found.keys():
        return ""
    return one_line(owner_line(found["pid"], found["host"], found["since"]))[:200]


def _clock() -> float:
    """Seconds that go on while a laptop sleeps, and never back."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@cache
def _machine() -> str:
    """Where process numbers mean the same: this boot, this container; "" if that is not told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _is_alive(pid: object) -> bool:
    return not isinstance(pid, int) or pid <= 0 or runs(pid)
