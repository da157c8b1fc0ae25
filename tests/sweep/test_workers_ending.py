"""Several processes that are stopped by a signal (by the clock: tests/faults/test_jobs.py)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_training import ToyTraining

from rarefy.core.errors import Interrupted
from rarefy.sweep.runner import Execution, execute

pytestmark = pytest.mark.usefixtures("eager")


def run(out: Path, folder: Path, jobs: int = 2, **options: Any) -> Execution:
    study = ToyTraining.at("tiny", seeds=options.pop("seeds", 3), folder=str(folder))
    return execute(study, "tiny", device="cpu", out=out, jobs=jobs, **options)


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
