"""Stores and results at an address.

What a disk does by locks and renames, a service does by a lease and a mark; what it cannot do is
said in one line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from killed_remotely import EARLIER, kill_and_go_on
from object_store import SECRET
from toy_study import Toy, only

import rarefy
from rarefy import cli
from rarefy.core.errors import RunError
from rarefy.core.place import Remote, as_place
from rarefy.studies.api import open_store, read_results
from rarefy.sweep import arrays, choices, lease
from rarefy.sweep.store import Store
from rarefy.sweep.zarr_places import Objects

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(autouse=True)
def toy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Toy)


def run(out: str, seeds: int = 2, **options: Any) -> xr.Dataset:
    return rarefy.run(Toy, scale="tiny", seeds=seeds, device="cpu", out=out, **options)


def complaint(capsys: pytest.CaptureFixture[str], line: list[str]) -> tuple[int, str]:
    code, said = cli.main(line), capsys.readouterr()
    assert said.err.count("\n") == 1, said.err
    assert SECRET not in said.err + said.out
    return code, said.err


LINE = ["run", "toy", "--scale", "tiny", "--device", "cpu", "--out"]


@pytest.mark.quick("new")
@pytest.mark.fault(
    when="a run into a store at an address is killed before any one of its writes",
    then="there is no store, or one whose finished cells are right; the same command finishes it",
    lost="the batches in flight; with `--overwrite` the old store",
)
@pytest.mark.parametrize("how", EARLIER)
def test_killed_at_an_address(how: str, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # (every single write: tests/heavy/test_remote_kills.py)
    first = list(EARLIER).index(how)
    assert kill_and_go_on(memory, monkeypatch, how, every=9, first=first) >= 4


@pytest.mark.fault(
    when="two runs have the same store, in a folder or at an address",
    then="the second says who holds it (pid, host, since when) and ends with exit code 3",
    lost="nothing",
    named="two parents on one store",
)
def test_two_parents(memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for out in (f"{memory}/toy", str(tmp_path / "toy")):
        first = Store(as_place(out), Toy.at("tiny"), "tiny", "float32")
        first.begin()
        code, line = complaint(capsys, [*LINE, out])
        said.append(line.replace(out, "OUT").rpartition(" since ")[0])
        assert code == 3
        first.close()
        assert run(out).attrs["cells_done"] == 12
    assert said[0] == said[1]
    assert "note: store OUT is being written by another process (pid " in said[0]


@pytest.mark.fault(
    when="a run loses the lease of its store (it slept, its network was gone) to another one",
    then="it stops with one line before it writes anything more; the other one finishes",
    lost="the batch it was writing",
)
def test_a_lost_lease(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SETTLING", 0.0)
    monkeypatch.setattr(choices, "BATCH_CPU", 4)
    original, batches = Store.write, 0

    def write(self: Store, *arguments: Any) -> None:
        nonlocal batches
        batches += 1
        if batches == 2:  # the other one comes
            taken = {"token": "theirs", "pid": 9, "host": "there", "since": "noon"}
            Remote(f"{memory}/.toy.lock").write_bytes(json.dumps(taken).encode())
            monkeypatch.setattr(Objects, "set", None)  # nothing is written from here on
        original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", write)
        written = Objects.set
        with pytest.raises(RunError, match=r"taken over by another process \(pid 9 on there since"):
            run(f"{memory}/toy")
        monkeypatch.setattr(Objects, "set", written)
    assert open_store(f"{memory}/toy").done().sum() == 4
    Remote(f"{memory}/.toy.lock").unlink()
    assert run(f"{memory}/toy").equals(rarefy.run(Toy, scale="tiny", device="cpu"))


@pytest.mark.fault(
    when="a run is asleep in the middle of a batch for longer than its lease holds",
    then="not one more chunk is written when it wakes up; the batch is computed again",
    lost="that batch",
)
def test_asleep_in_the_middle_of_a_batch(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(as_place(f"{memory}/toy"), Toy.at("tiny"), "tiny", "float32")
    original = arrays.Arrays.put

    def put(self: arrays.Arrays, runs: Any, columns: Any) -> None:
        ahead = lease._clock() + lease.SECONDS
        monkeypatch.setattr(lease, "_clock", lambda: ahead)
        original(self, runs, columns)

    with monkeypatch.context() as patch:
        patch.setattr(arrays.Arrays, "put", put)
        with pytest.raises(RunError, match="the lease could not be renewed for 60 s; nothing more"):
            run(f"{memory}/toy")
    store = open_store(f"{memory}/toy")
    assert not store.done().any()
    assert store.read()["end"].isnull().all()
    assert not (Remote(f"{memory}/toy") / "end" / "c").exists()


@pytest.mark.quick("cut-path/c/0/0/0", "gone-done/c/1")
@pytest.mark.fault(
    when="an object of a finished store at an address is cut short, changed or gone",
    then="`rarefy check` names it, readers refuse the store, `--repair` keeps what is whole",
    lost="the cells in it",
)
@pytest.mark.parametrize(
    ("how", "file"),
    [
        ("cut", "path/c/0/0/0"),
        ("gone", "path/c/0/0/0"),
        ("changed", "done/c/1"),
        ("gone", "done/c/1"),
        ("cut", "end/zarr.json"),
    ],
)
def test_a_damaged_object(
    how: str,
    file: str,
    memory: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(arrays, "CHUNK_RUNS", 8)
    monkeypatch.setattr(choices, "BATCH_CPU", 8)
    out = f"{memory}/toy"
    expected = run(out)
    damaged = Remote(f"{out}/{file}")
    content = damaged.read_bytes()
    damaged.unlink()
    if how != "gone":
        damaged.write_bytes(content[:-3] if how == "cut" else content[:9] + b"?" + content[10:])
    if (how, file) == ("gone", "done/c/1"):  # cells that count as not done: computed again
        assert run(out).equals(expected)
        return
    assert cli.main(["check", out]) == 1
    assert f"{out}: damaged: {file} is " in capsys.readouterr().out
    with pytest.raises(RunError, match=f"store {out} is damaged"):
        open_store(out).read()
    assert cli.main(["check", out, "--repair"]) == 0
    assert run(out).equals(expected)
    assert cli.main(["check", out]) == 0


@pytest.mark.fault(
    when="results at an address are damaged",
    then="the file is named, and nothing is read",
    lost="that file",
)
def test_damaged_results(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*LINE, f"{memory}/toy", "--results", f"{memory}/results"]) == 0
    table = Remote(f"{memory}/results/toy-tiny.parquet")
    table.write_bytes(table.read_bytes()[:-1])
    with pytest.raises(RunError, match=rf"results {table} are damaged"):
        read_results(table)
    capsys.readouterr()
    assert cli.main(["check", f"{memory}/results"]) == 1
    assert f"{table}: damaged" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.fault(
    when="the connection to a store is lost in mid-run, for good",
    then="after a few attempts one line says so and how to go on, exit code 3; what was finished "
    "is kept",
    lost="the batches in flight",
    named="an object store that cannot be reached",
)
def test_a_lost_connection(
    s3: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from botocore.exceptions import EndpointConnectionError  # type: ignore[import-untyped]
    from s3fs import S3FileSystem

    monkeypatch.setattr(choices, "BATCH_CPU", 4)
    out, original, batches = f"{s3}/toy", Store.write, 0

    async def gone(self: Any, *arguments: Any, **options: Any) -> None:
        raise EndpointConnectionError(endpoint_url="http://there")

    def write(self: Store, *arguments: Any) -> None:
        nonlocal batches
        batches += 1
        if batches == 2:
            monkeypatch.setattr(S3FileSystem, "_call_s3", gone)
        original(self, *arguments)

    connected = S3FileSystem._call_s3
    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", write)
        code = cli.main([*LINE, out])
    said = capsys.readouterr().err.splitlines()[-1]
    reason = 'Could not connect to the endpoint URL: "http://there"'
    again = f"; what was finished is kept; go on with: rarefy {' '.join([*LINE, out])}"
    assert (code, said) == (3, f"note: cannot write to store {out}: {reason}{again}")
    # nor is what cannot be reached taken for damaged, and repaired
    code, said = complaint(capsys, ["check", out, "--repair"])
    assert (code, said) == (1, f"error: {out}: {reason}\n")
    monkeypatch.setattr(S3FileSystem, "_call_s3", connected)
    monkeypatch.setattr(lease, "SETTLING", 0.0)
    monkeypatch.setattr(lease, "_is_alive", lambda pid: False)
    assert open_store(out).done().sum() == 4
    assert run(out).equals(rarefy.run(Toy, scale="tiny", device="cpu"))


@pytest.mark.fault(
    when="there are no credentials, no such bucket or no right to write",
    then="one line names address and reason before anything is computed; no secret is printed",
    lost="nothing",
)
def test_what_a_service_refuses(
    s3: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from botocore.exceptions import NoCredentialsError
    from s3fs import S3FileSystem

    out = "s3://no-such-bucket/toy"
    reason = "The specified bucket does not exist"
    unread = f"error: cannot read store {out}: {reason}\n"
    assert complaint(capsys, [*LINE, out]) == (2, unread)
    for verb in ("report", "check", "verify"):
        assert complaint(capsys, [verb, out]) == (2, f"error: {out}: {reason}\n")
    code, said = complaint(capsys, [*LINE, f"{s3}/toy", "--results", out])
    assert (code, reason in said, out in said) == (2, True, True)
    original = S3FileSystem._call_s3

    async def reading(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
        if method == "put_object":
            raise PermissionError("Access Denied")
        return await original(self, method, *arguments, **options)

    async def nobody(self: Any, *arguments: Any, **options: Any) -> None:
        raise NoCredentialsError

    monkeypatch.setattr(S3FileSystem, "_call_s3", reading)
    denied = f"--results='{s3}/results': cannot be written to: Access Denied"
    line = [*LINE, f"{s3}/toy"]
    assert complaint(capsys, [*line, "--results", f"{s3}/results"]) == (2, f"error: {denied}\n")
    code, said = complaint(capsys, line)
    assert (code, "cannot write to store" in said, "Access Denied" in said) == (1, True, True)
    monkeypatch.setattr(S3FileSystem, "_call_s3", nobody)
    why = f"error: cannot read store {s3}/toy: Unable to locate credentials\n"
    assert complaint(capsys, line) == (2, why)
    assert complaint(capsys, ["check", s3]) == (2, f"error: {s3}: Unable to locate credentials\n")


@pytest.mark.fault(
    when="an address has an unknown protocol, or is given where only this machine will do",
    then="one line says what is known, and that it must be a folder here; exit code 2",
    lost="nothing",
)
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{' '.join(LINE)} foo://x/y", "--out='foo://x/y': unknown protocol 'foo' (known: az, f"),
        (f"{' '.join(LINE)} s3://k:{SECRET}@b/y", "--out='s3://...': has a password in it"),
        (f"{' '.join(LINE)} x --results foo://x", "--results='foo://x': unknown protocol 'foo'"),
        ("check foo://x/y", "path='foo://x/y': unknown protocol 'foo'"),
        ("report foo://x/y", "path='foo://x/y': unknown protocol 'foo'"),
        ("report x --out s3://b/x.html", "--out='s3:/b/x.html': must be a folder or file of this"),
        (
            "train digits --out s3://b/x",
            "--out='s3:/b/x': must be a folder or file of this machine",
        ),
        ("train digits --save s3://b/x", "--save='s3:/b/x': must be a folder or file of this mac"),
        ("pretrain digits --save s3://b/x", "--save='s3:/b/x': must be a folder or file of this"),
    ],
)
def test_addresses_that_cannot_be(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = complaint(capsys, line.split())
    assert code == 2
    assert said in told
    assert not any(Path().iterdir())
