"""Fetching from a server of our own: resuming, cut connections, wrong files, two at once."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rarefy.core.errors import RunError
from rarefy.data.images import download
from rarefy.data.images.download import RemoteFile, fetch

CONTENT = random.Random(0).randbytes(300_000)  # the same in every process of a run
QUICK = (0.01, 0.01)


class Server(ThreadingHTTPServer):
    """Serves CONTENT, as badly as it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = CONTENT
        self.ranges = True
        self.cut_after: list[int] = []
        """Bytes after which each of the next connections is cut."""
        self.codes: list[int] = []
        """Error codes with which the next requests are answered."""
        self.say_length = True
        self.wrong_place = False
        self.stall = 0.0
        self.delay = 0.0
        self.asked: list[str | None] = []
        """The Range header of each request."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that went away is what some tests are about

    def remote(self, content: bytes = CONTENT, path: str = "sub/file.bin") -> RemoteFile:
        url = f"http://127.0.0.1:{self.server_address[1]}/file.bin"
        return RemoteFile(url, path, len(content), hashlib.sha256(content).hexdigest())


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        asked = self.headers.get("Range")
        server.asked.append(asked)
        time.sleep(server.delay)
        if server.codes:
            self.send_error(server.codes.pop(0))
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and server.ranges else 0
        if asked and start >= len(server.content):
            self.send_error(416)
            return
        body = server.content[start:]
        self.send_response(206 if asked and server.ranges else 200)
        if asked and server.ranges:
            place = start + 7 if server.wrong_place else start
            last = len(server.content) - 1
            self.send_header("Content-Range", f"bytes {place}-{last}/{len(server.content)}")
        if server.say_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.cut_after:
            self.wfile.write(body[: server.cut_after.pop(0)])
        elif server.stall:
            self.wfile.write(body[:1000])
            self.wfile.flush()
            time.sleep(server.stall)
        else:
            self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_file_comes_whole_and_only_once(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fetch(server.remote(), tmp_path)
    assert path == tmp_path / "sub" / "file.bin" and path.read_bytes() == CONTENT
    assert _names(tmp_path) == ["file.bin"]
    assert "file.bin (300.0 kB): finished at 100%" in capsys.readouterr().err
    assert fetch(server.remote(), tmp_path) == path
    assert server.asked == [None]


def test_cut_connections_are_resumed(server: Server, tmp_path: Path) -> None:
    server.cut_after = [100_000, 50_000, 0, 1]
    path = fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert path.read_bytes() == CONTENT
    assert server.asked == [
        None,
        "bytes=100000-",
        "bytes=150000-",
        "bytes=150000-",
        "bytes=150001-",
    ]


def test_without_a_length_a_cut_is_noticed_too(server: Server, tmp_path: Path) -> None:
    server.say_length = False
    server.cut_after = [100_000]
    path = fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert path.read_bytes() == CONTENT


def test_another_process_goes_on_where_one_stopped(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.cut_after = [200_000, 0, 0, 0]
    with pytest.raises(RunError) as caught:
        fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert "the connection was cut" in str(caught.value)
    assert "200.0 kB are kept, the same command goes on" in str(caught.value)
    assert _names(tmp_path) == ["file.bin.part"]
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=200000-"
    assert "200.0 kB already here" in capsys.readouterr().err


def test_a_server_that_cannot_resume_starts_again(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.cut_after = [100_000]
    path = fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-"]


def test_a_server_that_resumes_elsewhere_is_not_believed(server: Server, tmp_path: Path) -> None:
    server.wrong_place = True
    server.cut_after = [100_000]
    path = fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", None]


@pytest.mark.parametrize(
    "left",
    [b"x" * 1000, b"x" * 400_000, CONTENT[:-1] + b"x", b"x" * 300_000],
    ids=["shorter", "longer", "another end", "as long"],
)
def test_a_part_file_of_something_else_is_replaced(
    server: Server, tmp_path: Path, left: bytes
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file.bin.part").write_bytes(left)
    path = fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert path.read_bytes() == CONTENT


def test_a_finished_part_file_needs_no_network(tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    remote = RemoteFile("http://127.0.0.1:9/x", "file.bin", len(CONTENT), digest)
    assert fetch(remote, tmp_path, progress=False, waits=()).read_bytes() == CONTENT


def test_a_wrong_file_is_deleted_and_told(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    remote = server.remote()
    with pytest.raises(RunError, match="is not the official file: SHA-256 .* deleted") as caught:
        fetch(remote, tmp_path, progress=False, waits=QUICK)
    assert remote.url in str(caught.value) and remote.sha256 in str(caught.value)
    assert _names(tmp_path) == []


@pytest.mark.parametrize("say_length", [True, False])
@pytest.mark.parametrize(
    "content", [CONTENT + b"more", b"<html>log in here</html>"], ids=["longer", "shorter"]
)
def test_a_file_of_another_length_is_refused(
    server: Server, tmp_path: Path, content: bytes, say_length: bool
) -> None:
    server.content, server.say_length = content, say_length
    words = "server offers" if say_length else "more than the official|connection was cut|416"
    with pytest.raises(RunError, match=words):
        fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert not (tmp_path / "sub" / "file.bin").exists()
    assert len(server.asked) < 6


def test_not_found_is_told_at_once(server: Server, tmp_path: Path) -> None:
    server.codes = [404, 404]
    with pytest.raises(RunError, match="HTTP 404") as caught:
        fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    message = str(caught.value)
    assert server.remote().url in message and "\n" not in message
    assert f"put it at {tmp_path / 'sub' / 'file.bin'}" in message
    assert len(server.asked) == 1 and _names(tmp_path) == []


def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.codes = [503, 429]
    path = fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert path.read_bytes() == CONTENT and len(server.asked) == 3
    server.codes = [503] * 9
    with pytest.raises(RunError, match="HTTP 503"):
        fetch(server.remote(path="again"), tmp_path, progress=False, waits=QUICK)
    assert len(server.asked) == 6


def test_a_silent_server_is_given_up(server: Server, tmp_path: Path) -> None:
    server.stall = 2.0
    with pytest.raises(RunError, match="timed out"):
        fetch(server.remote(), tmp_path, progress=False, waits=(), timeout=0.2)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://no-such-host.invalid/x"])
def test_no_network_is_one_line(tmp_path: Path, url: str) -> None:
    remote = RemoteFile(url, "file.bin", 10, "0" * 64)
    with pytest.raises(RunError) as caught:
        fetch(remote, tmp_path, progress=False, waits=QUICK)
    message = str(caught.value)
    assert message.startswith(f"cannot fetch {url} (") and "\n" not in message
    assert f"put it at {tmp_path / 'file.bin'}" in message
    assert _names(tmp_path) == []


def test_a_full_disk_is_one_line(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file.bin.part").symlink_to("/dev/full")
    with pytest.raises(RunError, match="cannot write .*file.bin.part .No space left"):
        fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(download.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(RunError, match="not enough room in .*1.0 kB free, 300.0 kB needed"):
        fetch(server.remote(), tmp_path, progress=False, waits=QUICK)
    assert not (tmp_path / "sub" / "file.bin").exists()


def test_a_folder_that_cannot_be_made_is_one_line(server: Server, tmp_path: Path) -> None:
    (tmp_path / "sub").write_text("a file where a folder should be")
    with pytest.raises(RunError, match="cannot write"):
        fetch(server.remote(), tmp_path, progress=False, waits=QUICK)


def test_several_processes_at_once_fetch_once(server: Server, tmp_path: Path) -> None:
    server.delay = 0.3
    forked = multiprocessing.get_context("forkserver").Process
    workers = [forked(target=fetch, args=(server.remote(), tmp_path, False)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert (tmp_path / "sub" / "file.bin").read_bytes() == CONTENT
    assert _names(tmp_path) == ["file.bin"]
    if download.LOCKS:
        assert len(server.asked) == 1


def test_without_locks_each_has_a_part_file_of_its_own(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "LOCKS", False)
    server.cut_after = [1000, 0]
    with pytest.raises(RunError, match="1.0 kB are kept"):
        fetch(server.remote(), tmp_path, progress=False, waits=())
    assert _names(tmp_path) == [f"file.bin.{os.getpid()}.part"]
    assert fetch(server.remote(), tmp_path, progress=False).read_bytes() == CONTENT
    assert _names(tmp_path) == ["file.bin"]
