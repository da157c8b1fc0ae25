"""Jobs and threads.

A cell's bits depend neither on who computes it, nor on how often a run was stopped.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from toy_study import Toy
from toy_training import ToySumming, ToyTraining

import rarefy
from rarefy.core.contracts import Cells, Context
from rarefy.core.errors import UsageError
from rarefy.sweep.runner import execute
from rarefy.sweep.store import Store

CELLS = 3
KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from toy_training import ToySumming
from rarefy.sweep.runner import execute
from rarefy.sweep.store import Store

write, written = Store.write, []

def watched(store, *batch):
    write(store, *batch)
    written.append(batch)
    if len(written) == {cells} - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    shutil.copytree(store.path, store.path.with_name(f"after-{{len(written)}}"))

if __name__ == "__main__":
    Store.write = watched
    study = ToySumming.at("tiny", height=(1.0,), seeds={cells})
    execute(study, "tiny", device="cpu", out="store", jobs=None)
"""


@pytest.fixture(autouse=True)
def two_cores(eager: None) -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2  # a run leaves the caller's number alone


def trained(out: Path, jobs: int | None = None, **options: Any) -> xr.Dataset:
    study = ToySumming.at("tiny", height=(1.0,), seeds=CELLS)
    return execute(study, "tiny", device="cpu", out=out, jobs=jobs, **options).dataset


@pytest.mark.slow
@pytest.mark.fault(
    when="a run of trainings with the usual jobs is killed after any of its cells",
    then="gone on with, it gives the bits of an undisturbed run, by several processes or by one",
    lost="the cells under way",
)
def test_d6_killed_at_any_cell_a_run_gives_the_same_bits(tmp_path: Path) -> None:
    """The store is also copied after each cell: what a kill leaves at that moment."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(cells=CELLS))
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "2"}
    ended = subprocess.run([sys.executable, script.name], cwd=tmp_path, env=environment)
    assert ended.returncode == -signal.SIGKILL
    (tmp_path / "store").rename(tmp_path / f"after-{CELLS - 1}")
    undisturbed = trained(tmp_path / "undisturbed", jobs=1)
    for cells in range(1, CELLS):
        left = tmp_path / f"after-{cells}"
        study = ToySumming.at("tiny", height=(1.0,), seeds=CELLS)
        assert Store(left, study, "tiny", "float32").done().sum() == cells
        # the usual jobs for the last cell: it needs no process (processes have done the others)
        again = trained(left, jobs=None if cells == CELLS - 1 else 1)
        assert again.equals(undisturbed) and (again["threads"] == 1).all()


@pytest.mark.fault(
    when="a store was begun with another number of threads",
    then="the same number is taken again, and another one refused once a cell is done",
    lost="nothing",
)
def test_d6_the_number_of_threads_stays_with_the_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    wide = trained(path, jobs=1, threads=2)
    assert (wide["threads"] == 2).all()
    assert not np.array_equal(wide["end"], trained(tmp_path / "narrow", jobs=1)["end"])
    more = ToySumming.at("tiny", height=(1.0,), seeds=CELLS + 1)
    with pytest.raises(UsageError, match=f"threads=1: store {path} was begun with 2; leave it out"):
        execute(more, "tiny", device="cpu", out=path, threads=1)
    assert (execute(more, "tiny", device="cpu", out=path).dataset["threads"] == 2).all()
    with pytest.raises(UsageError, match="threads=0: must be at least 1"):
        trained(tmp_path / "none", threads=0)


@pytest.mark.fault(
    when="a store is from before the number of threads was kept",
    then="it is gone on with by one thread, and a note says that last digits may differ",
    lost="equality of the last digits",
)
def test_d6_an_older_store_goes_on_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = ToySumming.at("tiny", height=(1.0,), seeds=1)
    execute(study, "tiny", device="cpu", out=tmp_path / "store")
    store = Store(tmp_path / "store", study, "tiny", "float32")
    store.begin()
    store.remember(choices={"cpu": {"batch": 1, "compiled": False}})
    store.close()
    assert (trained(tmp_path / "store", jobs=1)["threads"] == 1).all()
    said = capsys.readouterr().err
    assert said.count("is from before the number of threads was kept") == 1


@pytest.mark.fault(
    when="cells of a study are computed together, all of them in one batch or on several cores",
    then="each batch has one thread, whether it is the last one or not",
    lost="nothing",
)
def test_d6_batches_have_one_thread_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    simulate = Toy.simulate

    def look(study: Toy, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        seen.append(torch.get_num_threads())
        return simulate(study, cells, context)

    monkeypatch.setattr(Toy, "simulate", look)
    for cells in (1, 12):
        rarefy.run(Toy, scale="tiny", device="cpu", seeds=cells, drift=1.0, sigma=0.1)
    assert set(seen) == {1} and len(seen) > 2


@pytest.mark.fault(
    when="the clock of the machine is set back while `--max-seconds` runs",
    then="the run still ends in time: no process looks at that clock",
    lost="nothing",
    named="clock going backwards",
)
@pytest.mark.usefixtures("forked_processes")
def test_lower_a_clock_set_back_does_not_make_a_run_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = [tmp_path / f"{name}.order" for name in ("2-1", "2-2")]
    for order in orders:
        order.write_text("wait")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 3600)  # as it was before it was set
    study = ToyTraining.at("tiny", folder=str(tmp_path))
    options: dict[str, Any] = {"device": "cpu", "out": tmp_path / "store"}
    began = time.monotonic()
    ended = execute(study, "tiny", **options, jobs=2, max_seconds=2, go_on="rarefy run toy")
    assert not ended.finished and time.monotonic() - began < 2 + 30
    assert "time is over" in ended.note and "go on with: rarefy run toy" in ended.note
    assert multiprocessing.active_children() == []
    for order in orders:
        order.unlink()
    again = execute(study, "tiny", **options)
    fresh = execute(study, "tiny", device="cpu", out=tmp_path / "fresh")
    assert again.finished and again.dataset.equals(fresh.dataset)
