"""The Python door: run a study, judge its results, open what was stored."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.studies import get_study
from rarefy.sweep import results as files
from rarefy.sweep import store as stores
from rarefy.sweep.runner import execute
from rarefy.sweep.spec import with_parameters


def run(
    study: str | type[Study],
    scale: str = "quick",
    seeds: int | None = None,
    device: str = "auto",
    out: Path | str | None = None,
    dtype: str = "float32",
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    threads: int | None = None,
    cluster: Any = None,
    **parameters: Any,
) -> xr.Dataset:
    """Run a study and give its results with dimensions (axes..., ``seed``, an output's own).

    With ``out`` the results stay in a store there, from which the same call goes on after an
    interruption. Without it they live in a temporary one. Cells that ``max_seconds`` did not
    reach are NaN; ``cells_done`` and ``cells`` are attributes. ``threads`` inside each operation,
    one on a CPU if not given, are part of how a cell is computed; a large training may want more.

    ``cluster``: the workers of a Dask cluster compute, this process writes. A scheduler's address,
    its file (``scheduler.json``), ``"local:4"`` for four processes here (a script must then guard
    its main part), or a ``distributed.Client``.
    """
    kind = get_study(study) if isinstance(study, str) else study
    if seeds is not None:
        parameters["seeds"] = seeds
    at_scale = kind.at(scale, **parameters)
    with contextlib.ExitStack() as stack:
        again = f"the same call with out={str(out)!r}"
        if out is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rarefy-"))
            out = Path(folder, kind.name)
            overwrite, again = False, "nothing, this store was temporary; out= keeps one"
        return execute(
            at_scale,
            scale,
            device,
            dtype,
            out,
            overwrite,
            max_seconds,
            progress,
            go_on=again,
            threads=threads,
            cluster=cluster,
        ).dataset


def judge(
    study: Study | type[Study] | str, dataset: xr.Dataset, scale: str | None = None
) -> list[Verdict]:
    """The verdicts of a study on its results. A study given by name or class takes its parameters
    from the results."""
    if not isinstance(study, Study):
        study = _study_behind(study, dataset)
    return study.verdicts(dataset, scale if scale is not None else dataset.attrs["scale"])


def _study_behind(study: type[Study] | str, dataset: xr.Dataset) -> Study:
    kind = get_study(study) if isinstance(study, str) else study
    return with_parameters(kind, json.loads(dataset.attrs["parameters"]))


def read_results(path: Path | str) -> tuple[Study, str, xr.Dataset]:
    """Study, scale and Dataset of committed results, from the path of either file."""
    return files.read_results(path, get_study)


def open_store(path: Path) -> stores.Store:
    """Open a store for reading, with the study that it was made of."""
    return stores.open_store(path, get_study)
