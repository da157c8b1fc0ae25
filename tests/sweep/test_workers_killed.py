"""A process that is killed or stopped ends the run, and the store is still good."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_training import ToyTraining

from rarefy.core.errors import Interrupted, RunError
from rarefy.sweep.runner import Execution, execute

pytestmark = pytest.mark.usefixtures("eager")


def run(out: Path, folder: Path, jobs: int = 2, **options: Any) -> Execution:
    study = ToyTraining.at("tiny", seeds=options.pop("seeds", 3), folder=str(folder))
    return execute(study, "tiny", device="cpu", out=out, jobs=jobs, **options)


@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="a process of a run is killed in mid-batch (out of memory, say)",
    then="one line says so; what others finish meanwhile is stored, and the same command goes on",
    lost="the batches in flight",
    named="a worker killed in mid-batch",
)
@pytest.mark.usefixtures("forked_processes")
def test_a_process_that_was_killed_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    (folder / "0-1.order").write_text("die")
    (folder / "0-2.order").write_text("wait")
    with pytest.raises(RunError) as caught:
        run(tmp_path / "store", folder, jobs=2)
    said = str(caught.value)
    assert said.startswith(
        "a process ended without a word (out of memory, or killed); fewer --jobs"
    )
    assert "of 6 cells are stored in" in said and "\n" not in said
    assert multiprocessing.active_children() == []
    for path in folder.glob("*.order"):
        path.unlink()
    assert run(tmp_path / "store", folder, jobs=1).finished


def alive(pid: int) -> bool:
    """Whether a process runs (one that has ended but was not yet asked for does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="the parent of several processes is killed",
    then="they end within seconds, and keep their checkpoints",
    lost="the batches in flight",
)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_processes_do_not_outlive_the_one_that_started_them(tmp_path: Path) -> None:
    """They would hold the device for ever, and write over the checkpoints of the next run."""
    folder = tmp_path / "orders"
    folder.mkdir()
    for name in ("0-1", "0-2"):
        (folder / f"{name}.order").write_text("wait")
    script = (
        "from pathlib import Path; from test_workers_killed import run; "
        f"run(Path({str(tmp_path / 'store')!r}), Path({str(folder)!r}), 2)"
    )
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), *filter(None, sys.path)])
    first = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
    end = time.monotonic() + 60
    while len(begun := list(folder.glob("*.begun"))) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    processes = [int(each.name.split(".")[1]) for each in begun]
    first.kill()
    first.wait()
    assert len(processes) == 2
    end = time.monotonic() + 5
    while (left := [pid for pid in processes if alive(pid)]) and time.monotonic() < end:
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


# ------------------------------------------------------------------------------ stopped by a signal


def order(folder: Path, **words: str) -> None:
    """``order(folder, c_0_2="wait")``: the cell of seed 0 and height 2."""
    folder.mkdir(exist_ok=True)
    for name, word in words.items():
        (folder / f"{name[2:].replace('_', '-')}.order").write_text(word)


def finished_later(store: Path, folder: Path) -> None:
    """What was stored is good: gone on with, it is what an undisturbed run gives."""
    assert multiprocessing.active_children() == []
    for path in folder.glob("*.order"):
        path.unlink()
    again = run(store, folder, jobs=1)
    fresh = run(store.with_name("fresh"), folder, jobs=1)
    assert again.finished
    np.testing.assert_array_equal(again.dataset["end"], fresh.dataset["end"])


@pytest.mark.usefixtures("forked_processes")
def test_asked_to_end_by_a_signal_all_processes_end_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    order(folder, c_0_1="wait", c_0_2="wait")

    def ask() -> None:
        end = time.monotonic() + 60
        while len(list(folder.glob("*.begun"))) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    asking = threading.Thread(target=ask)
    asking.start()
    with pytest.raises(Interrupted, match="stopped: 0 of 6 cells are stored") as caught:
        run(tmp_path / "store", folder)
    asking.join()
    assert "\n" not in str(caught.value)
    finished_later(tmp_path / "store", folder)
