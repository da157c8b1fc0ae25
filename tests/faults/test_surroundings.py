"""Disks, locks, caches and pipes"""

from __future__ import annotations

import errno
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from folders import seen_in
from PIL import Image
from toy_study import Toy, only

import rarefy
from rarefy.cli import main
from rarefy.core.compilation import or_plain
from rarefy.core.writing import new_folder, write_output
from rarefy.sweep.lock import Lock
from rarefy.sweep.store import Store, beside
from rarefy.tools.samples.opening import open_samples

TOY = ["run", "toy", "--scale", "tiny", "--seeds", "12"]
TRAIN = ["train", "photos", "--network", "lenet", "--epochs", "1", "--seeds", "1", "--jobs", "1"]
TRAIN = [*TRAIN, "--keep", "0.5"]
INFLUENCE = ["influence", "photos", "--neighbours", "0", "--no-check-labels"]
WRITING = {
    "run": [*TOY, "--out", "disk/s"],
    "results": [*TOY, "--out", "whole", "--results", "disk/r"],
    "train --save": [*TRAIN, "--out", "trained", "--save", "disk/n"],
    "influence": [*INFLUENCE, "--out", "disk/i"],
    "clean": ["clean", "photos", "--picks", "picks.json", "--copy", "--out", "disk/c"],
    "report": ["report", "whole", "--out", "disk/r.html"],
    "data check --sheet": ["data", "check", "photos", "--sheet", "disk/s.png"],
}
"""Every verb that writes, to a disk of its own."""
NUMBERS = ["x.npy", "--labels", "y.npy"]
BEGUN = {
    "train --save": WRITING["train --save"],
    "influence --stream": ["influence", *NUMBERS, "--stream", "--out", "disk/i"],
    "influence --embed": [
        *INFLUENCE,
        "--size",
        "32",
        "--embed",
        "torch.nn:Flatten",
        "--out",
        "disk/i",
    ],
    "clean": ["clean", *NUMBERS, "--picks", "numbers.json", "--out", "disk/c"],
}
"""What fills a large file piece by piece."""
Remount = Callable[[str], None]


@pytest.fixture
def disk(here: Path) -> Iterator[Remount]:
    """A small disk at ``disk``; called with other options of ``mount`` it changes."""
    Path("disk").mkdir()

    def mount(options: str) -> None:
        words = ["mount", "-t", "tmpfs", "-o", options, "none", str(here / "disk")]
        if subprocess.run(words, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a disk")

    mount("size=1m")
    yield lambda options: mount(f"remount,{options}")
    subprocess.run(["umount", str(here / "disk")], check=True)


@pytest.fixture
def things(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Photos with decisions about them, and a finished store."""
    only(monkeypatch, Toy)
    random = np.random.default_rng(0)
    for name in ("cat", "dog"):
        Path("photos", name).mkdir(parents=True)
        for number in range(12):
            pixels = random.integers(0, 255, (8, 8)).astype(np.uint8)
            Image.fromarray(pixels).save(Path("photos", name, f"{number}.png"))
    picks = [{"id": each, "decision": "drop"} for each in open_samples("photos").ids[:3]]
    held = {"format": "rarefy picks 1", "data": "photos", "read": {}, "picks": picks}
    Path("picks.json").write_text(json.dumps(held))
    assert main([*TOY, "--out", "whole"]) == 0


def refused(why: str, told: str) -> None:
    lines = [line for line in told.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and re.search(why, lines[0]) and "Traceback" not in told, told


@pytest.mark.slow
@pytest.mark.fault(
    when="the disk is full, at every moment of a run (it grows by a few kilobytes each time)",
    then="one line and exit code 1 each time; the same command goes on, and in the end the store "
    "has the bits of an undisturbed run",
    lost="the batches in flight",
    named="disk full",
)
@pytest.mark.usefixtures("things")
def test_a_disk_that_is_full_at_every_moment(
    disk: Remount, capsys: pytest.CaptureFixture[str]
) -> None:
    call, codes, stored = WRITING["run"], [], set()
    for size in range(16, 2000, 16):
        disk(f"size={size}k")
        codes.append(main(call))
        told = capsys.readouterr().err
        if codes[-1] == 0:
            break
        refused("No space left on device", told)
        stored |= {int(each) for each in re.findall(r"(\d+) of 72 cells are stored", told)}
    assert codes[-1] == 0 and set(codes[:-1]) == {1} and len(codes) > 5
    assert stored - {0, 72}  # also in the middle
    found, whole = (
        Store(Path(path), Toy.at("tiny", seeds=12), "tiny", "float32").read()
        for path in ("disk/s", "whole")
    )
    assert found.equals(whole)


@pytest.mark.quick("results", "influence", "clean", "data check --sheet")
@pytest.mark.fault(
    when="the disk is full where a verb writes",
    then="one line names the file and the reason, exit code 1, and nothing half-written is seen; "
    "with space the same command finishes",
    lost="what was being written",
    named="disk full",
)
@pytest.mark.parametrize("verb", [verb for verb in WRITING if verb != "run"])
@pytest.mark.usefixtures("things")
def test_a_full_disk_is_one_line(
    verb: str, disk: Remount, capsys: pytest.CaptureFixture[str]
) -> None:
    disk("size=4k")
    Path("disk/full").write_bytes(b"x" * 4096)
    assert main(WRITING[verb]) == 1
    refused(r"cannot write .*disk/|No space left", capsys.readouterr().err)
    left = [path for path in Path("disk").rglob("*") if path.is_file()]
    assert [path for path in left if path.stat().st_size or ".rarefy" not in str(path)] == [
        Path("disk/full")
    ]
    disk("size=8m")
    assert main(WRITING[verb]) == 0
    assert len([path for path in seen_in(Path("disk")) if path.name[0] != "."]) == 2


@pytest.mark.fault(
    when="the folder is on a read-only disk",
    then="one line says so, exit code 1 or 2, and nothing is written elsewhere either; what lies "
    "there can be read: a finished run, `check`, `report`",
    lost="nothing",
    named="read-only folder",
)
@pytest.mark.usefixtures("things")
def test_a_read_only_disk(disk: Remount, capsys: pytest.CaptureFixture[str]) -> None:
    disk("size=8m")
    shutil.copytree("whole", "disk/s")
    disk("ro")
    before = seen_in(Path())
    for call in WRITING.values():
        call = [word.replace("disk/s", "disk/new/s") for word in call]
        assert main(call) in (1, 2)
        refused("Read-only file system|nothing can be written into", capsys.readouterr().err)
    assert seen_in(Path()) == before and seen_in(Path("disk")) == [Path("disk/s")]
    for call in (
        WRITING["run"],
        ["check", "disk/s"],
        ["report", "disk/s", "--out", "r.html"],
    ):
        assert main(call) == 0, capsys.readouterr().err


@pytest.mark.fault(
    when="the lock of a store is empty, garbage, or says that a process holds it that is not there",
    then="it is taken over, and gone afterwards: what counts is the system's lock on the file",
    lost="nothing",
    named="garbled lock",
)
@pytest.mark.usefixtures("things")
def test_a_garbled_lock() -> None:
    lock = beside(Path("again"), "lock")
    for content in (b"", b"\xff\x00" * 500, b"pid 1 on nowhere since 2020-01-01"):
        lock.write_bytes(content)
        assert main([*TOY, "--out", "again", "--overwrite"]) == 0
        assert not lock.exists()


@pytest.mark.fault(
    when="a second command is to write a store that another one writes",
    then="one line says who holds it (pid, host, since when), exit code 3: the same command later",
    lost="nothing",
    named="two parents on one store",
)
@pytest.mark.usefixtures("things")
def test_a_second_parent_is_told_who_holds_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    lock = Lock(beside(Path("held"), "lock"), Path("held"))
    lock.acquire()
    assert main([*TOY, "--out", "held"]) == 3
    told = capsys.readouterr().err
    assert re.search(rf"another process \(pid {os.getpid()} on \S+ since 2\d\d\d-", told), told
    lock.release()
    assert main([*TOY, "--out", "held"]) == 0


@pytest.mark.fault(
    when="a run is killed between its last cell and its end",
    then="the same command removes what trainings had left beside the store; a store that another "
    "process extends is left alone",
    lost="nothing",
)
@pytest.mark.usefixtures("things")
def test_nothing_is_left_beside_a_finished_store() -> None:
    scratch = beside(Path("whole"), "scratch")
    scratch.mkdir()
    lock = Lock(beside(Path("whole"), "lock"), Path("whole"))
    lock.acquire()
    assert main([*TOY, "--out", "whole"]) == 0 and scratch.exists()
    lock.release()
    assert main([*TOY, "--out", "whole"]) == 0 and not scratch.exists()


@pytest.mark.fault(
    when="the reader of a command's output goes away (`rarefy studies | head -1`)",
    then="it ends without a word, with exit code 0",
    lost="nothing",
    named="closed pipe",
)
def test_a_closed_pipe() -> None:
    line = f"{sys.executable} -m rarefy studies | head -c 1; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONPATH": str(Path(rarefy.__file__).parents[1])}
    words = ["bash", "-c", line]
    ran = subprocess.run(words, env=environment, capture_output=True, check=False)
    assert (ran.returncode, len(ran.stdout), ran.stderr) == (0, 1, b"")


@pytest.mark.fault(
    when="the compiler has no folder to keep in what it makes",
    then="a note, once, and uncompiled kernels; other errors of a file system are not hidden",
    lost="speed",
    named="no cache folder",
)
def test_a_compiler_without_a_cache(capsys: pytest.CaptureFixture[str]) -> None:
    def nowhere(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "/cache")

    function = or_plain(nowhere, lambda tensor: tensor + 1)
    for _ in range(2):
        assert torch.equal(function(torch.zeros(2)), torch.ones(2))
    told = capsys.readouterr().err
    assert told.startswith("note: going on without compiled kernels (") and told.count("\n") == 1


@pytest.mark.fault(
    when="there is no home folder (no HOME, a user without a name)",
    then="studies run; what needs the folder of image sets says which setting names one",
    lost="nothing",
    named="no cache folder",
)
@pytest.mark.usefixtures("things")
def test_no_home_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody(_: int) -> None:
        raise KeyError("uid not found")

    for name in ("HOME", "RAREFY_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert main([*TOY, "--out", "s"]) == 0
    assert main([*INFLUENCE, "--no-gallery", "--out", "i"]) == 0
    capsys.readouterr()
    assert main(["data"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: no home folder to look for") and "set RAREFY_DATA" in told
    assert rarefy.run(Toy, scale="tiny").sizes["seed"] == 2


@pytest.mark.fault(
    when="a killed process has left half of a file or folder (hidden, `.NAME.PID.partial`)",
    then="the next one that writes there removes it, a minute later; not that of a process that "
    "runs",
    lost="nothing",
)
def test_what_killed_processes_left_goes(here: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [f".a.txt.{pid}.partial" for pid in (gone.pid, os.getppid(), "x")]
    for name in (*names, f".b.txt.{gone.pid}.partial"):
        Path(name).write_text("half")
    Path(f".o.{gone.pid}.partial/deep").mkdir(parents=True)
    everything = {path.name for path in here.iterdir()}
    write_output(Path("a.txt"), "whole")
    assert everything < {path.name for path in here.iterdir()}  # all are young
    for path in here.glob(".*.partial"):
        os.utime(path, (0, 0))
    with new_folder(Path("o")):
        assert Path(f".o.{gone.pid}.partial").exists()  # something below it is young
    os.utime(f".o.{gone.pid}.partial/deep", (0, 0))
    Path("o").rmdir()
    write_output(Path("a.txt"), "whole again")
    with new_folder(Path("o")) as folder:
        (folder / "file").write_text("whole")
    left = {path.name for path in here.glob(".*.partial")}
    assert left == {*names[1:], f".b.txt.{gone.pid}.partial"}


@pytest.mark.fault(
    when="the disk has room for the beginning of a file that is filled piece by piece",
    then="one line names the file and the reason; with space the same command finishes",
    lost="nothing",
    named="disk full",
)
@pytest.mark.parametrize("verb", BEGUN)
@pytest.mark.usefixtures("things")
def test_a_disk_with_room_for_the_beginning(
    verb: str, disk: Remount, capsys: pytest.CaptureFixture[str]
) -> None:
    draws = np.random.default_rng(0).normal(size=(2000, 4)).astype(np.float32)
    np.save("x.npy", draws)
    np.save("y.npy", np.arange(2000) % 3)
    samples = open_samples("x.npy", labels="y.npy", standardize=False)
    held = {"format": "rarefy picks 1", "data": "x.npy", "fingerprint": samples.fingerprint}
    held |= {"read": {}, "picks": [{"id": samples.ids[0], "decision": "drop"}]}
    Path("numbers.json").write_text(json.dumps(held))
    disk("size=12k")
    assert main(BEGUN[verb]) == 1
    refused(r"cannot write .*disk/.*: No space left on device", capsys.readouterr().err)
    disk("size=8m")
    assert main(BEGUN[verb]) == 0
