"""The Python door: run a study, judge its results, open what was stored."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.core.errors import UsageError, unknown
from rarefy.core.papers import paper_names
from rarefy.core.place import Place, as_place
from rarefy.studies import get_study, listed
from rarefy.sweep import results as files
from rarefy.sweep import store as stores
from rarefy.sweep.runner import execute
from rarefy.sweep.spec import with_parameters

if TYPE_CHECKING:
    import pandas as pd


def list_studies() -> pd.DataFrame:
    """Every study there is, those of other packages too.

    Returns:
        A DataFrame with a row per study, by name: ``title``, ``paper``, ``shows`` (the figures and
        theorems), ``claims`` (their ids, as ``rarefy.claims`` has them), ``needs``.

    Example:
        >>> table = rarefy.list_studies()
        >>> table.loc["benign-correlation", ["paper", "shows", "claims"]].tolist()
        ['Xu & Chen', 'Fig. 3', 'B6']
    """
    import pandas as pd

    rows = [
        {
            "study": entry.name,
            "title": entry.title,
            "paper": paper_names(entry.papers),
            "shows": entry.shows,
            "claims": ", ".join(entry.claims),
            "needs": entry.needs,
        }
        for entry in listed().values()
    ]
    return pd.DataFrame(rows).set_index("study")


def run(
    study: str | type[Study],
    scale: str = "quick",
    seeds: int | None = None,
    device: str = "auto",
    out: Place | str | None = None,
    dtype: str = "float32",
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    threads: int | None = None,
    cluster: Any = None,
    **parameters: Any,
) -> xr.Dataset:
    """Run a study over its grid, all settings and seeds at once.

    Arguments:
        study: a name (``rarefy.list_studies``), or a class of yours.
        scale: ``"tiny"``, ``"quick"``, ``"paper"`` or another that the study has.
        seeds: repeats of each setting; those of the scale if not given.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        out: a store that keeps the results, a folder or an address such as
            ``"s3://bucket/name"``: the same call goes on there after an interruption. A temporary
            one if not given.
        dtype: ``"float32"`` or ``"float64"``.
        overwrite: replace a store that was made with other parameters.
        max_seconds: stop cleanly after so many seconds; cells that were not reached are NaN.
        progress: show a bar.
        threads: inside each operation, one on a CPU if not given. They are part of how a cell is
            computed; a large training may want more.
        cluster: the workers of a Dask cluster compute, this process writes: a scheduler's address,
            its file (``"scheduler.json"``), ``"local:4"`` for four processes here (a script must
            then guard its main part), or a ``distributed.Client``.
        parameters: further parameters of the study by name; those that are axes take several
            values.

    Returns:
        An ``xarray.Dataset`` with the dimensions (axes..., ``seed``, an output's own), coordinates
        on all of them, and what it was made of as attributes (``cells``, ``cells_done``,
        ``parameters``, ``provenance``).

    Example:
        >>> results = rarefy.run("contrast-init", scale="tiny", seeds=3)
        >>> results.sizes["seed"], results.attrs["cells_done"] == results.attrs["cells"]
        (3, True)
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
    """Judge the claims of a study by its results. Runs that stopped being finite are no evidence,
    neither for nor against.

    Arguments:
        study: its name or class (parameters are then those of the results), or a study as it is.
        dataset: what ``rarefy.run`` or ``rarefy.load`` gave.
        scale: by whose readings; that of the results if not given.

    Returns:
        A list of ``rarefy.Verdict``, one per reading.

    Example:
        >>> results = rarefy.run("contrast-init", scale="tiny")
        >>> verdicts = rarefy.judge("contrast-init", results)
        >>> {verdict.about for verdict in verdicts if verdict.role == "primary"}
        {'C9'}
    """
    if not isinstance(study, Study):
        study = study_behind(study, dataset)
    scale = scale if scale is not None else dataset.attrs["scale"]
    return study.verdicts(finite_runs(dataset), scale)


def finite_runs(dataset: xr.Dataset) -> xr.Dataset:
    """The results without runs that stopped being finite: such a run costs itself only. It is NaN
    from its start to its end, and a seed of which no run is left is dropped, so that it is counted
    nowhere. What is NaN in a run that stayed finite stays."""
    finite = dataset.get("nonfinite_step", xr.DataArray(-1)) == -1
    if finite.all():
        return dataset
    outputs = dataset.drop_vars("nonfinite_step").where(finite)
    left = finite.any([dim for dim in finite.dims if dim != "seed"])
    kept = outputs.assign(nonfinite_step=dataset["nonfinite_step"]).assign_attrs(dataset.attrs)
    return kept.isel(seed=np.flatnonzero(left)) if left.any() else kept


def study_behind(study: type[Study] | str, dataset: xr.Dataset) -> Study:
    """With the parameters of the results."""
    kind = get_study(study) if isinstance(study, str) else study
    return with_parameters(kind, json.loads(dataset.attrs["parameters"]))


class Results(Mapping[str, xr.Dataset]):
    """The results in a folder by name, ``STUDY-SCALE``; each is read when it is asked for.

    A mapping: ``list(results)`` has the names, ``results["contrast-init-paper"]`` one Dataset.
    ``rarefy.load`` makes it.

    Arguments:
        paths: the Parquet file of each, by name.
        where: the folder, for messages.

    Example:
        >>> results = rarefy.load("results")  # the folder of the repository
        >>> "contrast-init-paper" in results
        True
        >>> results["contrast-init-paper"].sizes["seed"]
        100
    """

    def __init__(self, paths: Mapping[str, Place], where: str) -> None:
        self._paths, self._where = dict(paths), where

    def __getitem__(self, name: str) -> xr.Dataset:
        if name not in self._paths:
            raise unknown(f"results in {self._where}", name, self._paths)
        return read_results(self._paths[name])[2]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, name: object) -> bool:  # (a mapping's own would read the file)
        return name in self._paths

    def __repr__(self) -> str:
        return f"<{len(self)} results in {self._where}: {', '.join(self)}>"


@overload
def load(path: Place | str) -> xr.Dataset | Results: ...


@overload
def load(path: Place | str, name: str) -> xr.Dataset: ...


def load(path: Place | str, name: str | None = None) -> xr.Dataset | Results:
    """Open what a run has kept.

    Plain xarray opens a store too, ``xr.open_zarr(store, consolidated=False)``: there one dimension
    ``run`` has all cells, with axes and seed as its coordinates. For somebody without rarefy,
    ``rarefy.load(store).to_zarr("plain.zarr", zarr_format=2)`` writes what this function gives.

    Arguments:
        path: results (``"results/contrast-init-paper.parquet"``, or the JSON file beside it), a
            store, or a folder of results; on this machine or at an address
            (``"s3://bucket/name"``).
        name: of a folder of results: the one to open, e.g. ``"contrast-init-paper"``.

    Returns:
        An ``xarray.Dataset`` with coordinates, as ``rarefy.run`` gives it (cells of a store that
        are not done are NaN). Of a folder of results and no name ``rarefy.Results``: a mapping
        from names to such Datasets.

    Example:
        >>> results = rarefy.run("contrast-init", scale="tiny", out="store")
        >>> rarefy.load("store").equals(results)
        True
        >>> published = rarefy.load("results/contrast-init-paper.parquet")
        >>> published.attrs["scale"], published["d"].values.tolist()
        ('paper', [9, 16, 32, 64, 128, 256])
    """
    place = as_place(path, "path")
    if place.suffix in (".json", ".parquet"):
        found = read_results(place)[2]
    elif not place.exists():
        raise UsageError(f"path={str(path)!r}: there is no such file or folder")
    elif (place / "zarr.json").exists() or not (paths := files.find_results(place)):
        found = open_store(place).read()
    else:
        results = Results({one.stem: one for one in paths}, str(path))
        return results if name is None else results[name]
    if name is not None:
        raise UsageError(f"name={name!r}: is for a folder of results, and {path} is none")
    return found


def read_results(path: Place | str) -> tuple[Study, str, xr.Dataset]:
    """Study, scale and Dataset of committed results, from the path or address of either file."""
    return files.read_results(path, get_study)


def open_store(path: Place | str) -> stores.Store:
    """Open a store for reading, with the study that it was made of."""
    return stores.open_store(path, get_study)
