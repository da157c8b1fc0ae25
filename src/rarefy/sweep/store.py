"""The store of a run: a Zarr group with a flat ``run`` axis, killed and resumed without loss.

On disk, all with the leading dimension ``run``: the coordinates of each run (its axes, ``seed`` and
``key``), every output, ``run_seconds`` (its share of its batch's time) and ``done``, which is
written last. All outputs are floats in the dtype of the run, whole numbers too, so that NaN can
say "not done". Zarr replaces a chunk file as a whole, and the group is made under another name and
then renamed: there is no moment at which a kill leaves something half-written in place.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from rarefy.core.contracts import NONFINITE_STEP, Output, Study
from rarefy.core.errors import RunError, UsageError
from rarefy.sweep.examine import MARK, examine
from rarefy.sweep.grid import Grid, coordinate, grid_of
from rarefy.sweep.lock import Lock
from rarefy.sweep.spec import Spec, differences, spec_hash, spec_of, study_of

CHUNK_RUNS = 32
"""Runs in one chunk file; batches are multiples of it, or powers of two below it."""
CHUNK_BYTES = 64_000_000
"""A chunk is put together in memory: large outputs get fewer runs a chunk."""


def all_outputs(study: Study) -> tuple[Output, ...]:
    declared = study.outputs()
    if any(output.name == NONFINITE_STEP.name for output in declared):
        return declared
    return (*declared, NONFINITE_STEP)


class Store:
    """The store of ``study`` at ``path``. Making the object only looks; ``begin`` creates or
    extends the store and locks it for writing, ``close`` unlocks it."""

    def __init__(
        self, path: Path, study: Study, scale: str, dtype: str, overwrite: bool = False
    ) -> None:
        self.path, self.study, self.scale, self.dtype = path, study, scale, dtype
        self.spec = spec_of(study, dtype)
        self.grid: Grid = grid_of(study)
        self._lock = Lock(path.with_name(f".{path.name}.lock"), path)
        self._building = path.with_name(f".{path.name}.building")
        self._old = path.with_name(f".{path.name}.old")
        self.scratch = path.with_name(f".{path.name}.scratch")
        self._replace = overwrite
        self._group: zarr.Group | None = None
        self.shapes = _shapes(study)
        attributes = examine(path, overwrite)
        if attributes is not None and not overwrite:
            self._refuse_other_spec(attributes)
            self._group = zarr.open_group(path, mode="r")

    # Looking

    def done(self) -> np.ndarray:
        """Which cells are finished, shape (run,)."""
        finished = np.zeros(len(self.grid), dtype=bool)
        if self._group is not None:
            stored = self._column("done")[: len(self.grid)]
            finished[: len(stored)] = stored
        return finished

    def wall_seconds(self) -> float:
        """Time spent computing the finished cells, over all resumed runs."""
        if self._group is None:
            return 0.0
        stored = self._column("done")
        return float(self._column("run_seconds")[stored].sum())

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._group.attrs) if self._group is not None else {}

    def read(self) -> xr.Dataset:
        """Everything, with dimensions (axes..., ``seed``, an output's own); NaN where a cell is
        not done."""
        group, grid, done = self._group, self.grid, self.done()
        if group is None:
            raise UsageError(f"no store at {self.path}")
        coordinates: dict[str, Any] = {
            name: _readable(coordinate(values)) for name, values in grid.axes.items()
        }
        coordinates["seed"] = np.arange(grid.seeds)
        coordinates.update(self.study.coordinates())
        axes = tuple(grid.axes)
        variables = {}
        for output in all_outputs(self.study):
            flat = np.full((len(grid), *self.shapes[output.name]), np.nan, dtype=self.dtype)
            stored = self._column(output.name)[: len(grid)]
            flat[: len(stored)] = stored
            flat[~done] = np.nan
            # cells lie as (seed, axes...); the Dataset has the seed last, beside what it repeats
            values = np.moveaxis(flat.reshape(*grid.shape, *flat.shape[1:]), 0, len(axes))
            attributes = {"meaning": output.meaning, "unit": output.unit}
            variables[output.name] = ((*axes, "seed", *output.dims), values, attributes)
        stored_provenance = dict(self.attributes.get("provenance", {}))
        stored_provenance["wall_seconds"] = round(self.wall_seconds(), 2)
        return xr.Dataset(
            variables,
            coordinates,
            {
                "study": self.study.name,
                "title": self.study.title,
                "scale": self.scale,
                "version": self.study.version,
                "dtype": self.dtype,
                "parameters": json.dumps(self.spec["parameters"]),
                "spec_hash": spec_hash(self.spec),
                "cells": len(grid),
                "cells_done": int(done.sum()),
                "provenance": json.dumps(stored_provenance),
            },
        )

    def _column(self, name: str) -> np.ndarray:
        """One variable of the runs the spec on disk speaks of; a kill during an extension can
        leave arrays longer than that."""
        assert self._group is not None
        spec = self.attributes["spec"]
        stored_runs = self.grid.points * spec["parameters"]["seeds"]
        try:
            array = self._group[name]
            assert isinstance(array, zarr.Array)
            return np.asarray(array[:stored_runs])
        except OSError as error:
            raise RunError(f"cannot read store {self.path}: {error}") from error
        except Exception as error:
            # a damaged chunk fails in whichever codec meets it first
            raise RunError(
                f"store {self.path} is damaged ({name}: {error}); use --overwrite to run it again"
            ) from error

    def _refuse_other_spec(self, attributes: Mapping[str, Any]) -> None:
        found = differences(attributes["spec"], self.spec)
        if found:
            more = f" (and {len(found) - 3} more differences)" if len(found) > 3 else ""
            raise UsageError(
                f"store {self.path} {'; '.join(found[:3])}{more}; use --overwrite or another --out"
            )

    # Writing

    def begin(self) -> None:
        """Lock the store, then create it, or extend it by the seeds it does not have."""
        with self._failures():
            self._lock.acquire()
            try:
                self._prepare()
            except BaseException:
                self._lock.release()
                raise

    def _prepare(self) -> None:
        for left_over in (self._building, self._old):  # killed while it was being made
            shutil.rmtree(left_over, ignore_errors=True)
        # look again: it may have changed before we had the lock
        attributes = examine(self.path, self._replace)
        if attributes is None or self._replace:
            self._create()
            self._replace = False
            return
        self._refuse_other_spec(attributes)
        for litter in self.path.rglob("*.partial"):
            litter.unlink()
        self._group = zarr.open_group(self.path, mode="r+")
        stored = self._column("key")[: len(self.grid)]
        if not np.array_equal(stored, self.grid.keys[: len(stored)]):
            raise UsageError(
                f"store {self.path} was drawn with other keys than {self.study.name} gives now; "
                "use --overwrite or another --out"
            )
        if attributes["spec"]["parameters"]["seeds"] < self.grid.seeds:
            self._extend()

    def _create(self) -> None:
        # the parents exist: the lock lies in the same folder
        group = zarr.open_group(self._building, mode="w")
        for name, column in self._coordinates().items():
            kind: Any = column.dtype if column.dtype.kind in "biuf" else str
            self._array(group, name, (), kind, None)[:] = column
        for output in all_outputs(self.study):
            self._array(group, output.name, output.dims, self.dtype, np.nan)
        self._array(group, "run_seconds", (), "float64", 0.0)
        self._array(group, "done", (), "bool", False)
        group.attrs.put(self._attributes())
        shutil.rmtree(self.scratch, ignore_errors=True)  # of the store that is replaced
        if self.path.exists():
            self.path.rename(self._old)
        self._building.rename(self.path)
        shutil.rmtree(self._old, ignore_errors=True)
        self._group = zarr.open_group(self.path, mode="r+")

    def _array(
        self, group: zarr.Group, name: str, dims: tuple[str, ...], dtype: Any, empty: Any
    ) -> zarr.Array:
        shape = (len(self.grid), *self.shapes.get(name, ()))
        # not fewer because the grid is small: more seeds may come, and chunks cannot be changed
        runs = CHUNK_RUNS
        while runs > 1 and 8 * runs * math.prod(shape[1:]) > CHUNK_BYTES:
            runs //= 2
        return group.create_array(
            name,
            shape=shape,
            chunks=(runs, *shape[1:]),
            dtype=dtype,
            fill_value=empty,
            dimension_names=("run", *dims),
        )

    def _attributes(self) -> dict[str, Any]:
        return {
            MARK: 1,
            "spec": self.spec,
            "spec_hash": spec_hash(self.spec),
            "scale": self.scale,
            "provenance": {},
            "choices": {},
        }

    def _coordinates(self) -> dict[str, np.ndarray]:
        columns = {name: _readable(column) for name, column in self.grid.values.items()}
        return {**columns, "key": self.grid.keys}

    def _extend(self) -> None:
        """Lengthen every array, then say so: killed in between, it is simply done again."""
        group = self._group
        assert group is not None
        for _, array in group.arrays():
            array.resize((len(self.grid), *array.shape[1:]))
        for name, column in self._coordinates().items():
            group[name][:] = column  # type: ignore[index]
        group.attrs["spec"] = self.spec

    def remember(self, **values: Any) -> None:
        """Write attributes (provenance, choices of the runner) beside the results."""
        assert self._group is not None
        with self._failures():
            self._group.attrs.update(values)

    def write(self, runs: np.ndarray, outputs: Mapping[str, np.ndarray], seconds: float) -> None:
        """Store a batch: ``outputs`` have shape (run, ...). ``done`` comes last."""
        group = self._group
        assert group is not None
        shapes = self.shapes
        for name, values in outputs.items():
            if name not in shapes:
                raise RunError(f"{self.study.name} gave an output {name!r} it does not declare")
            if values.shape != (len(runs), *shapes[name]):
                raise RunError(
                    f"{self.study.name} gave {name!r} with shape {values.shape}, "
                    f"declared is {(len(runs), *shapes[name])}"
                )
        for name in shapes:
            if name not in outputs:
                raise RunError(f"{self.study.name} did not give its output {name!r}")
        with self._failures():
            for name, values in outputs.items():
                _put(group, name, runs, np.asarray(values, dtype=self.dtype))
            _put(group, "run_seconds", runs, np.full(len(runs), seconds / len(runs)))
            _put(group, "done", runs, np.ones(len(runs), dtype=bool))

    def close(self) -> None:
        self._lock.release()

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"cannot write to store {self.path}: {error.strerror or error}; "
                "what was finished is kept"
            ) from error


def open_store(path: Path) -> Store:
    """Open a store for reading, with the study it was made of."""
    attributes = examine(path)
    if attributes is None:
        raise UsageError(f"no store at {path}")
    spec: Spec = attributes["spec"]
    return Store(path, study_of(spec), attributes["scale"], spec["dtype"])


def _shapes(study: Study) -> dict[str, tuple[int, ...]]:
    """The shape of each output, without the run axis."""
    sizes = {name: len(values) for name, values in study.coordinates().items()}
    for output in all_outputs(study):
        for dimension in output.dims:
            if dimension not in sizes:
                raise TypeError(
                    f"{study.name}: output {output.name!r} has dimension {dimension!r}, "
                    "which coordinates() does not give"
                )
    return {
        output.name: tuple(sizes[dimension] for dimension in output.dims)
        for output in all_outputs(study)
    }


def _put(group: zarr.Group, name: str, runs: np.ndarray, values: np.ndarray) -> None:
    array = group[name]
    assert isinstance(array, zarr.Array)
    if runs[-1] - runs[0] + 1 == len(runs):
        array[int(runs[0]) : int(runs[-1]) + 1] = values
    else:
        array.oindex[(runs,)] = values


def _readable(column: np.ndarray) -> np.ndarray:
    """A coordinate that a file can hold: what is no number becomes its text."""
    if column.dtype.kind in "biufU":
        return column
    return np.asarray([str(value) for value in column])
