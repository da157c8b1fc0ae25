"""One real study by every runner and into every kind of store, through the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr
from dask_processes import dask_processes, until

from rarefy.studies.api import open_store

STUDY = ["benign-features", "--scale", "quick", "--device", "cpu"]


def started(out: object, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rarefy", "run", *STUDY, "--out", str(out), *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ended(run: subprocess.Popen[str], out: object) -> xr.Dataset:
    _, said = run.communicate(timeout=600)
    assert run.returncode == 0, said
    return read(out)


def read(out: object) -> xr.Dataset:
    return open_store(str(out)).read()


def test_runners_and_stores_give_identical_datasets(
    tmp_path: Path,
    s3: str,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same study at home, on two local workers, on two others of which one is killed, and into
    S3: at home, and on the worker that is left."""
    monkeypatch.setenv("RAREFY_COMPILE", "0")
    home = ended(started(tmp_path / "home"), tmp_path / "home")
    found = {"local:2": ended(started(tmp_path / "l", "--cluster", "local:2"), tmp_path / "l")}
    with dask_processes(tmp_path) as processes:
        on = ("--cluster", str(processes.file))
        run = started(tmp_path / "k", *on)
        until(lambda: (tmp_path / "k").exists() and read(tmp_path / "k").attrs["cells_done"], 120)
        processes.workers[0].kill()
        assert run.poll() is None  # in mid-run
        found["a worker killed"] = ended(run, tmp_path / "k")
        found["S3"] = ended(started(f"{s3}/home"), f"{s3}/home")
        found["S3, one worker"] = ended(started(f"{s3}/cluster", *on), f"{s3}/cluster")
    for how, dataset in found.items():
        assert dataset.equals(home), how
    record_property("cells", home.attrs["cells_done"])
    record_property("ways", ", ".join(found))
    assert home.attrs["cells_done"] == home.attrs["cells"] == 1200
