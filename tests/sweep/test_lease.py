"""The lease of a store at an address: one holder at a time, whatever the clocks say."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from rarefy.core.errors import Busy, RunError
from rarefy.core.place import Remote
from rarefy.sweep import lease
from rarefy.sweep.lease import Lease


@pytest.fixture
def path(memory: str) -> Remote:
    return Remote(f"{memory}/.toy.lock")


def lease_at(path: Remote) -> Lease:
    return Lease(path, path.with_name("toy"))


def put(path: Remote, **told: Any) -> None:
    path.write_bytes(json.dumps({"token": "theirs", **told}).encode())


def written_ago(path: Remote, seconds: float) -> None:
    """By the clock of the service."""
    service, name = path._service()
    service.store[name].modified = datetime.now(UTC) - timedelta(seconds=seconds)


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_one_holder_at_a_time(where: str, request: pytest.FixtureRequest) -> None:
    path = Remote(f"{request.getfixturevalue(where)}/.toy.lock")
    first, second = lease_at(path), lease_at(path)
    first.acquire()
    first.check()
    with pytest.raises(Busy) as said:
        second.acquire()
    assert str(said.value).startswith(
        f"store {path.with_name('toy')} is being written by another process "
        f"(pid {os.getpid()} on {socket.gethostname()} since 2"
    )
    assert said.value.exit_code == 3
    first.check()
    first.release()
    first.release()  # (twice is once)
    assert list(path.parent.iterdir()) == []
    second.acquire()
    second.release()


def test_of_many_at_once_one_has_it(path: Remote) -> None:
    held, refused = [], []

    def attempt() -> None:
        mine = lease_at(path)
        try:
            mine.acquire()
            held.append(mine)
        except Busy:
            refused.append(mine)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 7)
    held[0].check()
    held[0].release()


def test_of_two_the_last_one_has_it_where_a_service_overwrites(
    path: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Services without conditional writes: both write, wait, and look who is there."""
    original = MemoryFileSystem.pipe_file

    def overwriting(self: Any, where: str, value: bytes, mode: str = "", **options: Any) -> None:
        original(self, where, value)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", overwriting)
    monkeypatch.setattr(lease, "SETTLING", 0.5)
    mine = lease_at(path)
    threading.Timer(0.1, put, [path], {"pid": 7, "host": "there", "since": "noon"}).start()
    with pytest.raises(Busy, match=r"pid 7 on there since noon"):
        mine.acquire()
    path.unlink()
    mine.acquire()
    mine.release()


def test_a_lease_that_is_not_renewed_is_taken_over(
    path: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "SETTLING", 0.0)
    put(path, pid=1, host="elsewhere", since="noon")
    written_ago(path, lease.SECONDS + lease.MARGIN - 5)
    with pytest.raises(Busy, match="pid 1 on elsewhere since noon"):
        lease_at(path).acquire()
    written_ago(path, lease.SECONDS + lease.MARGIN + 5)
    mine = lease_at(path)
    mine.acquire()
    mine.release()


def test_the_clock_of_the_holder_does_not_count(path: Remote) -> None:
    put(path, pid=1, host="elsewhere", since="noon", until="1999-01-01 00:00:00+00:00")
    with pytest.raises(Busy):
        lease_at(path).acquire()


def test_where_a_service_keeps_no_times_the_holder_says_until_when(
    path: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "SETTLING", 0.0)
    monkeypatch.setattr(Remote, "modified", lambda self: None)
    put(path, until=(datetime.now(UTC) - timedelta(seconds=5)).isoformat())
    with pytest.raises(Busy):
        lease_at(path).acquire()
    put(path, until="soon")
    with pytest.raises(Busy, match=r"another process \(unknown\)"):
        lease_at(path).acquire()
    put(path, until=(datetime.now(UTC) - timedelta(seconds=60)).isoformat())
    mine = lease_at(path)
    mine.acquire()
    mine.release()


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b"[" * 100_000])
def test_a_garbled_lease_is_somebodys_until_it_is_over(
    content: bytes, path: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "SETTLING", 0.0)
    path.write_bytes(content)
    with pytest.raises(Busy, match=r"another process \(unknown\)"):
        lease_at(path).acquire()
    written_ago(path, 3600)
    mine = lease_at(path)
    mine.acquire()
    mine.release()


@pytest.mark.skipif(not lease._machine(), reason="the system does not say which boot this is")
def test_after_a_kill_on_this_machine_there_is_nothing_to_wait_for(
    path: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "SETTLING", 0.0)
    put(path, pid=ended_process(), host=socket.gethostname(), machine="another boot")
    with pytest.raises(Busy):
        lease_at(path).acquire()
    put(path, pid=ended_process(), machine=lease._machine())
    mine = lease_at(path)
    mine.acquire()
    mine.release()


def test_stopped_while_it_waits_it_is_given_back(
    path: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(path, pid=1)
    written_ago(path, 3600)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lease_at(path).acquire()
    assert not path.exists()


def test_it_is_renewed_as_long_as_it_is_held(path: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWED_EVERY", 0.02)
    mine = lease_at(path)
    mine.acquire()
    since, until = json.loads(path.read_bytes())["since"], mine._until
    written_ago(path, 50)
    patience = time.monotonic() + 20
    while time.monotonic() < patience and mine._until < until + 0.05:
        time.sleep(0.02)
    assert mine._until >= until + 0.05
    written = path.modified()
    assert written is not None
    assert (datetime.now(UTC) - written).total_seconds() < 20
    assert json.loads(path.read_bytes())["since"] == since
    mine.release()
    time.sleep(0.1)
    assert not path.exists()  # nor written once more


def test_one_that_could_not_be_renewed_is_lost(
    path: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock of the holder alone: nobody has to tell it."""
    monkeypatch.setattr(lease, "SECONDS", 0.05)
    mine = lease_at(path)
    mine.acquire()
    time.sleep(0.1)
    with pytest.raises(
        RunError, match="the lease could not be renewed for 0.05 s; nothing more is"
    ):
        mine.check(ask=False)
    mine.release()


@pytest.mark.parametrize("taken", [True, False])
def test_one_that_is_lost_is_noticed_and_left_alone(taken: bool, path: Remote) -> None:
    mine = lease_at(path)
    mine.acquire()
    path.unlink()
    if taken:
        put(path, pid=3, host="th\x1b[31mere", since="noon")
    said = r"was taken over by another process \(pid 3 on th\\x1b\[31mere since noon\)"
    with pytest.raises(RunError, match=said if taken else "the lease was removed"):
        mine.check()
    mine.release()
    assert path.exists() == taken
