"""The arrays of a store on disk, all with the leading dimension ``run``: coordinates, outputs,
``run_seconds`` and ``done``."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from zarr.core.sync import sync

from rarefy.core.contracts import NONFINITE_STEP, Experiment, Output
from rarefy.core.place import Place
from rarefy.sweep.chunks import (
    CODECS,
    NEEDED,
    Damage,
    chunk_files,
    find_damage,
    flush_all,
    open_array,
)
from rarefy.sweep.grid import Grid, coordinate, grid_of
from rarefy.sweep.renames import with_former_names
from rarefy.sweep.zarr_places import for_zarr, no_guard

CHUNK_RUNS = 32
"""Runs in one chunk file, or more; batches are multiples of it, or powers of two below it."""
CHUNK_FILES = 64
"""Of one array, at most about, however many cells: reading and checking take their time for each.
What is lost with a file is then still a small part of the results."""
COORDINATE_RUNS = 4096
"""Coordinates are written once and can be made again: few files, however many cells."""
CHUNK_BYTES = 64_000_000
"""A chunk is put together in memory: large outputs get fewer runs a chunk."""
LARGE_CHUNK_BYTES = 4_000_000
"""Of a chunk with more runs than that: a small batch writes all of it again."""


def all_outputs(study: Experiment) -> tuple[Output, ...]:
    declared = study.outputs()
    if any(output.name == NONFINITE_STEP.name for output in declared):
        return declared
    return (*declared, NONFINITE_STEP)


def coordinates_of(study: Experiment) -> dict[str, np.ndarray]:
    """The coordinates of a study's Dataset: axes, ``seed``, and those of its outputs."""
    grid = grid_of(study)
    axes = {name: _readable(coordinate(values)) for name, values in grid.axes.items()}
    return {**axes, "seed": np.arange(grid.seeds), **study.coordinates()}


class Arrays:
    """Those of ``study``, in the Zarr group that ``open`` was told of last. ``guard`` raises where
    nothing may be written any more."""

    def __init__(
        self, study: Experiment, grid: Grid, dtype: str, guard: Callable[[], None] = no_guard
    ) -> None:
        self.grid, self._renamed, self._guard = grid, study.renamed, guard
        self.path: Place = Path()
        self.shapes = _shapes(study)
        self.coordinates = {
            **{name: _readable(column) for name, column in grid.values.items()},
            "key": grid.keys,
        }
        self._layout: dict[str, tuple[tuple[str, ...], Any, Any]] = {
            **{name: ((), _kind(column), None) for name, column in self.coordinates.items()},
            **{output.name: (output.dims, dtype, np.nan) for output in all_outputs(study)},
            **{"run_seconds": ((), "float64", 0.0), "done": ((), "bool", False)},
        }
        """Of every array: dimensions behind ``run``, dtype, value of what is not written."""
        self._opened: dict[str, zarr.Array] = {}

    def open(self, path: Place, mode: Literal["r", "r+", "w"]) -> zarr.Group:
        self.path, self._opened = path, {}
        self._group = zarr.open_group(for_zarr(path, self._guard), mode=mode, zarr_format=3)
        # axes that a store has under their former names keep these there
        kept = {before: name for before, name in self._renamed.items() if (path / before).is_dir()}
        self.coordinates = with_former_names(kept, self.coordinates)
        self._layout = with_former_names(kept, self._layout)
        return self._group

    def __getitem__(self, name: str) -> zarr.Array:
        """An array, opened once: every opening reads and parses a file."""
        if name not in self._opened:
            with _writing_all_chunks():
                array = self._group[name]
            assert isinstance(array, zarr.Array)
            self._opened[name] = array
        return self._opened[name]

    def create(self, batch: int = 1) -> None:
        """For batches of so many runs, if they are the usual ones."""
        even = 1 << (max(len(self.grid) // CHUNK_FILES, 1) - 1).bit_length()
        for name in self._layout:
            self.add(name, max(CHUNK_RUNS, batch, even))
        self.write_coordinates()

    def add(self, name: str, runs: int | None = None) -> None:
        """Describe an array, with so many runs in a chunk if they are not large (None: as the
        others have); chunks that are there already become its own."""
        dims, dtype, empty = self._layout[name]
        shape = (len(self.grid), *self.shapes.get(name, ()))
        # not fewer because the grid is small: more seeds may come, and chunks cannot be changed
        if name not in (*self.shapes, *NEEDED):
            runs = COORDINATE_RUNS
        else:
            runs = self._usual_chunk() if runs is None else runs
            if 8 * runs * math.prod(shape[1:]) > LARGE_CHUNK_BYTES:
                runs = CHUNK_RUNS
        while runs > 1 and 8 * runs * math.prod(shape[1:]) > CHUNK_BYTES:
            runs //= 2
        with _writing_all_chunks():
            self._opened[name] = self._group.create_array(
                name,
                shape=shape,
                chunks=(runs, *shape[1:]),
                dtype=dtype,
                fill_value=empty,
                compressors=CODECS,
                dimension_names=("run", *dims),
            )
        if isinstance(self.path, Path):
            (self.path / name / "c").mkdir(exist_ok=True)  # for its chunks

    def _usual_chunk(self) -> int:
        """Runs of a chunk of the arrays that every store has."""
        there = (open_array(self.path, name, ()) for name in NEEDED)
        return max((array.chunks[0] for array in there if array is not None), default=CHUNK_RUNS)

    def extend(self) -> None:
        """To the length of the grid."""
        for name in self._layout:
            self[name].resize((len(self.grid), *self.shapes.get(name, ())))
        self.write_coordinates()

    def write_coordinates(self) -> None:
        arrays = [self[name] for name in self.coordinates]
        sync(_written(arrays, slice(0, len(self.grid)), self.coordinates.values()))

    def put(self, runs: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Write values of some runs, and wait until the disk (or the service) has them."""
        arrays = {name: self[name] for name in columns}
        if runs[-1] - runs[0] + 1 == len(runs):  # all at once: a service is waited for once
            place = slice(int(runs[0]), int(runs[-1]) + 1)
            sync(_written(arrays.values(), place, columns.values()))
        else:
            for name, values in columns.items():
                arrays[name].oindex[(runs,)] = values
        if isinstance(self.path, Path):
            files = (chunk_files(self.path, name, array, runs) for name, array in arrays.items())
            flush_all(set().union(*files))

    def damage(self) -> list[Damage]:
        spec: Any = self._group.attrs["spec"]  # a kill can leave arrays longer than it says
        runs = self.grid.points * spec["parameters"]["seeds"]
        shapes = {name: self.shapes.get(name, ()) for name in self._layout}
        return find_damage(self.path, shapes, runs)


def _writing_all_chunks() -> AbstractContextManager[Any]:
    """For arrays opened inside: a chunk that is all NaN is a file too, or it could not be told from
    a lost one."""
    return zarr.config.set({"array.write_empty_chunks": True})


async def _written(
    arrays: Iterable[zarr.Array], place: slice, columns: Iterable[np.ndarray]
) -> None:
    writing = [
        array._async_array.setitem(place, values)  # (with a public name in later versions)
        for array, values in zip(arrays, columns, strict=True)
    ]
    # one that fails ends none of the others in the middle
    failed = [one for one in await asyncio.gather(*writing, return_exceptions=True) if one]
    if failed:
        raise failed[0]


def _kind(column: np.ndarray) -> Any:
    return column.dtype if column.dtype.kind in "biuf" else str


def _shapes(study: Experiment) -> dict[str, tuple[int, ...]]:
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


def _readable(column: np.ndarray) -> np.ndarray:
    """A coordinate that a file can hold: what is no number becomes its text."""
    if column.dtype.kind in "biufU":
        return column
    return np.asarray([str(value) for value in column])
