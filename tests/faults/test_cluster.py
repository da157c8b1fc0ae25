"""Runs on a cluster."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dask_processes import DaskProcesses, dask_processes, until
from toy_training import ToyTraining

from rarefy.core.errors import RunError, SchedulerLost
from rarefy.sweep.runner import Execution, execute

pytestmark = pytest.mark.usefixtures("eager")

PARENT = """
from toy_training import ToyTraining
from rarefy.sweep.runner import execute
study = ToyTraining.at("tiny", folder={folder!r})
execute(study, "tiny", device="cpu", out={out!r}, cluster={cluster!r})
"""


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    with dask_processes(tmp_path_factory.mktemp("dask")) as started:
        yield started


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A folder in which two cells of six are told to wait for ever."""
    folder = tmp_path / "orders"
    folder.mkdir()
    for name in ("1-1", "1-2"):
        (folder / f"{name}.order").write_text("wait")
    return folder


def run(orders: Path, cluster: Any = None, name: str = "store", **options: Any) -> Execution:
    study = ToyTraining.at("tiny", folder=str(orders))
    options |= {"out": orders.parent / name, "cluster": cluster, "go_on": "rarefy run toy"}
    return execute(study, "tiny", device="cpu", **options)


def begun(orders: Path) -> dict[str, int]:
    """The cells that wait, and the processes that they are in."""
    names = [path.name.split(".") for path in orders.glob("1-*.begun")]
    return {cell: int(pid) for cell, pid, _ in names}


def meanwhile(true: Callable[[], object], then: Callable[[], object]) -> threading.Thread:
    def act() -> None:
        until(true)
        then()

    acting = threading.Thread(target=act)
    acting.start()
    return acting


def obey_no_more(orders: Path) -> None:
    for order in orders.glob("*.order"):
        order.unlink()


def as_undisturbed(orders: Path, again: Execution) -> bool:
    fresh = run(orders, name="fresh")
    return again.finished and again.dataset.equals(fresh.dataset)


@pytest.mark.slow
@pytest.mark.fault(
    when="the parent of a run on a cluster is killed",
    then="its workers stop what they had within seconds; the same command goes on, and gives the "
    "bits of an undisturbed run",
    lost="the batches in flight",
)
def test_a_killed_parent_leaves_its_workers_free(processes: DaskProcesses, orders: Path) -> None:
    told = {"folder": str(orders), "out": str(orders.parent / "store")}
    script = PARENT.format(**told, cluster=str(processes.file))
    parent = subprocess.Popen([sys.executable, "-c", script], env=processes.environment)
    until(lambda: len(begun(orders)) == 2)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    obey_no_more(orders)
    # both workers have one thread: what waited in it for ever must have ended
    assert as_undisturbed(orders, run(orders, processes.file, max_seconds=60))


@pytest.mark.slow
@pytest.mark.fault(
    when="a worker of a cluster is killed in mid-batch",
    then="another one computes its batch again; the bits are those of an undisturbed run",
    lost="the time its batches took",
    named="a worker killed in mid-batch",
)
def test_a_killed_worker_is_made_up_for(processes: DaskProcesses, orders: Path) -> None:
    (orders / "1-2.order").unlink()
    victims = {worker.pid: worker for worker in processes.workers}

    def kill() -> None:
        obey_no_more(orders)
        victims[begun(orders)["1-1"]].kill()

    acting = meanwhile(lambda: "1-1" in begun(orders), kill)
    again = run(orders, processes.file)
    acting.join()
    assert as_undisturbed(orders, again)
    assert len(list(orders.glob("1-1.*.begun"))) >= 2
    assert [worker.poll() for worker in processes.workers].count(None) == 1


@pytest.mark.slow
@pytest.mark.fault(
    when="the scheduler of a cluster is lost in mid-run",
    then="one line and exit code 3; its workers end; the same command goes on with what is stored, "
    "on a cluster or without, and gives the bits of an undisturbed run",
    lost="the batches in flight",
    named="the scheduler of a cluster lost",
)
def test_a_lost_scheduler_is_one_line(processes: DaskProcesses, orders: Path) -> None:
    acting = meanwhile(lambda: begun(orders), processes.scheduler.kill)
    with pytest.raises(SchedulerLost) as caught:
        run(orders, processes.file)
    acting.join()
    said = str(caught.value)
    assert said.startswith("the scheduler at tcp://127.0.0.1:") and "\n" not in said
    assert " of 6 cells are stored in " in said and said.endswith("go on with: rarefy run toy")
    assert caught.value.exit_code == 3 and isinstance(caught.value, RunError)
    until(lambda: all(worker.poll() is not None for worker in processes.workers))
    obey_no_more(orders)
    assert as_undisturbed(orders, run(orders))
