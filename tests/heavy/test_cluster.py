"""Clusters for longer: real studies, many kills, workers that come and go."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from dask_processes import DaskProcesses, dask_processes, until
from toy_study import Toy
from toy_training import ToySumming

import rarefy
from rarefy.core.errors import UsageError
from rarefy.sweep.runner import execute
from rarefy.sweep.store import Store

Record = Callable[[str, object], None]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[DaskProcesses]:
    """A scheduler that has no workers yet."""
    with dask_processes(tmp_path, workers=0) as started:
        yield started


def run(study: Any, out: Path, **options: Any) -> xr.Dataset:
    done = execute(study, "tiny", device="cpu", out=out, **options)
    assert done.finished
    return done.dataset


def slow() -> Toy:
    """1200 cells; in batches of 8 there is something to kill at any moment."""
    return Toy.at("tiny", seeds=200, pause=0.02)


@pytest.mark.parametrize("compiled", [False, True])
def test_real_studies_have_the_same_bits_on_a_cluster(
    compiled: bool, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    """Of laboratories that compute cells together, and of trainings one at a time."""
    from distributed import Client, LocalCluster

    monkeypatch.setenv("RAREFY_COMPILE", str(int(compiled)))
    names = ["contrast-alignment"]
    if not compiled:  # (compiling takes minutes)
        names += ["topk-regimes", "benign-features", "granularity-errors", "influence-covariance"]
        names += ["granularity-digits", "sparse-mnist"]
    compared = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        for name in names:
            try:
                home = rarefy.run(name, scale="tiny", device="cpu")
            except UsageError as error:  # a set that is not here
                assert "rarefy data" in str(error), name
                continue
            away = rarefy.run(name, scale="tiny", device="cpu", cluster=client)
            assert home.equals(away), name
            compared.append(name)
    record_property("studies", ", ".join(compared))
    assert len(compared) >= (1 if compiled else 4)


def test_workers_that_are_killed_again_and_again(
    processes: DaskProcesses, tmp_path: Path, record_property: Record
) -> None:
    """They have nannies, which start them anew."""
    from distributed import Client

    home = run(slow(), tmp_path / "home", batch=8)
    for _ in range(2):
        processes.add_worker("--nanny")
    ended, kills = threading.Event(), []

    def kill() -> None:
        chance = random.Random(0)
        with Client(scheduler_file=str(processes.file), set_as_default=False) as client:
            while not ended.wait(chance.uniform(1, 4)):
                alive = client.run(os.getpid, on_error="ignore")
                if alive and len(kills) < 12:
                    kills.append(chance.choice(sorted(alive.values())))
                    os.kill(kills[-1], signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        away = run(slow(), tmp_path / "away", batch=8, cluster=processes.file)
    finally:
        ended.set()
        killing.join()
    assert away.equals(home)
    record_property("kills", len(kills))
    assert len(kills) >= 3


def test_workers_that_come_and_go(
    processes: DaskProcesses, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run begins before there is any and waits, computes while there is one, and waits."""
    study, out = slow(), tmp_path / "away"

    def done() -> int:
        return int(Store(out, study, "tiny", "float32").done().sum())

    def come_and_go() -> None:
        first = processes.add_worker()
        until(lambda: done() > 50)
        first.terminate()  # it takes its leave
        first.wait()
        processes.add_worker()

    coming = threading.Timer(1, come_and_go)
    coming.start()
    away = run(study, out, batch=8, cluster=processes.file)
    coming.join()
    assert away.equals(run(study, tmp_path / "home", batch=8))
    said = capsys.readouterr().err
    assert said.count("note: waiting for workers at tcp://127.0.0.1:") == 1
    assert said.count("note: no worker is left at tcp://127.0.0.1:") == 1


def test_a_worker_of_several_threads_gives_the_same_bits(
    processes: DaskProcesses, tmp_path: Path
) -> None:
    processes.add_worker("--no-nanny", "--nthreads", "3")
    for study in (Toy.at("tiny", seeds=100), ToySumming.at("tiny")):
        away = run(study, tmp_path / f"away-{study.name}", cluster=processes.file)
        assert away.equals(run(study, tmp_path / f"home-{study.name}"))


def test_a_worker_without_what_the_run_needs_is_named(
    processes: DaskProcesses, tmp_path: Path
) -> None:
    (tmp_path / "other" / "rarefy").mkdir(parents=True)
    (tmp_path / "other" / "rarefy" / "__init__.py").write_text("")
    package = str(Path(rarefy.__file__).parents[1])
    for path, missing in ((str(tmp_path / "other"), "rarefy"), (package, "toy_study")):
        worker = processes.add_worker(path=path)
        said = f"^worker tcp://.* cannot load the run .*No module named '{missing}.*; it needs rare"
        with pytest.raises(UsageError, match=said) as caught:
            run(Toy.at("tiny"), tmp_path / "store", cluster=processes.file)
        assert "\n" not in str(caught.value) and not (tmp_path / "store").exists()
        worker.kill()
        worker.wait()


def test_ctrl_c_in_a_terminal_is_one_line(toy_environment: dict[str, str], tmp_path: Path) -> None:
    """It reaches every process of the terminal; the same command goes on."""
    words = ["run", "toy", "--scale", "tiny", "--seeds", "20", "--set", "pause=0.5"]
    command = [sys.executable, "-m", "rarefy", *words, "--cluster", "local:2"]
    options: dict[str, Any] = {"cwd": tmp_path, "env": toy_environment, "text": True}
    started = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, **options
    )
    assert started.stderr is not None
    assert "toy: start\n" in iter(started.stderr.readline, "")
    os.killpg(started.pid, signal.SIGINT)
    _, said = started.communicate(timeout=120)
    stopped, last = said.splitlines()
    assert re.match(r"toy: stopped at \d+% after", stopped)
    assert re.match(r"error: stopped: \d+ of 120 cells are stored in runs/toy-tiny", last)
    assert started.returncode == 130
    (tmp_path / "hurry").touch()
    again = subprocess.run(command, capture_output=True, **options)
    assert again.returncode == 0 and "120 cells in runs/toy-tiny" in again.stdout
