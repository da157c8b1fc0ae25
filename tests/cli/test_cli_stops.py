"""A run that is killed or stopped: it says how to go on, and going on gives the same numbers."""

from __future__ import annotations

import re
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import xarray as xr
from forked_program import ForkedProgram
from toy_study import Toy, only

import rarefy
from rarefy import cli
from rarefy.sweep.store import Store

SLOW = ("run", "toy", "--scale", "tiny", "--seeds", "40", "--set", "pause=0.15", "--out", "store")
"""Eight batches of more than half a second: time to be stopped on a busy machine."""


@contextmanager
def running(environment: dict[str, str], folder: Path) -> Iterator[ForkedProgram]:
    """A slow run of which at least one batch is stored."""
    program = ForkedProgram(SLOW, folder, environment)
    try:
        give_up = time.monotonic() + 60
        while not (folder / "store" / "done" / "c" / "0").exists():
            assert program.process.is_alive() and time.monotonic() < give_up
            time.sleep(0.02)
        yield program
    finally:
        program.process.kill()


def slow_store(folder: Path) -> Store:
    study = Toy.at("tiny", seeds=40, pause=0.15)
    return Store(folder / "store", study, "tiny", "float32")


@pytest.fixture(scope="module")
def undisturbed() -> xr.Dataset:
    # the pause changes no number, but it is part of the spec
    return rarefy.run(Toy, scale="tiny", seeds=40, device="cpu")


def going_on(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command, without its pauses."""
    (folder / "hurry").touch()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RAREFY_COMPILE", "0")
    only(monkeypatch, Toy)
    assert cli.main(words) == 0


@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="a run is killed in the middle (SIGKILL)",
    then="the same command gives the bits of an undisturbed run",
    lost="the batches in flight",
    named="a parent killed at random moments: SIGKILL, SIGTERM, Ctrl-C twice",
)
@pytest.mark.slow
def test_killed_and_started_again_gives_the_same(
    toy_environment: dict[str, str],
    tmp_path: Path,
    undisturbed: xr.Dataset,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with running(toy_environment, tmp_path) as program:
        program.signal(signal.SIGKILL)
        program.end()
    assert 0 < slow_store(tmp_path).done().sum() < 240
    going_on(list(SLOW), tmp_path, monkeypatch)
    assert re.search(r"toy: start \(\d+% done before\)", capsys.readouterr().err)
    assert slow_store(tmp_path).read().equals(undisturbed)


@pytest.mark.quick("15-3")
@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="a run is stopped by Ctrl-C or SIGTERM",
    then="the last line says how much is stored and the command that goes on; exit code 130, "
    "by SIGTERM 3",
    lost="the batches in flight",
    named="a parent killed at random moments: SIGKILL, SIGTERM, Ctrl-C twice",
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 3)])
def test_stopped_says_how_to_go_on(
    number: signal.Signals,
    code: int,
    toy_environment: dict[str, str],
    tmp_path: Path,
    undisturbed: xr.Dataset,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running(toy_environment, tmp_path) as program:
        program.signal(number)
        found, said = program.end()
    assert found == code
    done = slow_store(tmp_path).done().sum()
    assert 0 < done < 240
    last = said.splitlines()[-1]
    kind = "note" if code == 3 else "error"
    assert last.startswith(f"{kind}: stopped: {done} of 240 cells are stored in store; ")
    words = shlex.split(last.partition("go on with: rarefy ")[2])
    assert tuple(words) == SLOW
    if number == signal.SIGINT:
        going_on(words, tmp_path, monkeypatch)
        assert slow_store(tmp_path).read().equals(undisturbed)
