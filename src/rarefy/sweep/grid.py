"""The grid of a study: the product of its axes times its seeds, as a flat list of cells.

Seeds are the slowest axis. More seeds therefore only append cells, which is what lets a store
grow without moving anything it already holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rarefy.core.contracts import Cells, Experiment
from rarefy.core.errors import bad_value
from rarefy.core.rng import key

MOST_CELLS = 10**8
"""More could not be listed in memory, let alone be run."""


@dataclass(frozen=True)
class Grid:
    """``axes``: the values of each axis; ``values``: for each axis and ``seed`` an array of shape
    (run,); ``keys``: the key each run draws from, shape (run,), int64."""

    axes: Mapping[str, tuple[Any, ...]]
    seeds: int
    values: Mapping[str, np.ndarray]
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def points(self) -> int:
        """Cells of one seed."""
        return len(self) // self.seeds

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of (seed, axis, axis, ...), the order in which the cells lie."""
        return (self.seeds, *(len(values) for values in self.axes.values()))

    def cells(self, runs: np.ndarray) -> Cells:
        """The cells at some positions of the run axis, as one batch."""
        return Cells({name: column[runs] for name, column in self.values.items()}, self.keys[runs])


def grid_of(study: Experiment) -> Grid:
    """Lay out the cells of a study. An axis without values or with one twice is an error."""
    axes = {name: tuple(getattr(study, name)) for name in study.axes}
    for name, choices in axes.items():
        if not choices:
            raise bad_value(name, choices, "needs at least one value")
        if len({key(choice) for choice in choices}) < len(choices):
            raise bad_value(name, choices, "has the same value twice")
    points = math.prod(len(choices) for choices in axes.values())
    if points * study.seeds > MOST_CELLS:
        raise bad_value("seeds", study.seeds, f"makes more than {MOST_CELLS:,} cells")
    runs = np.arange(points * study.seeds)
    values: dict[str, np.ndarray] = {}
    stride = points
    for name, choices in axes.items():
        stride //= len(choices)
        values[name] = coordinate(choices)[(runs // stride) % len(choices)]
    values["seed"] = runs // points
    return Grid(axes, study.seeds, values, _keys(study, values))


def coordinate(choices: Sequence[Any]) -> np.ndarray:
    """An axis as an array: numbers, truth values and texts as themselves, anything else (a tuple
    of frequencies, say) as objects."""
    if all(isinstance(choice, bool | int | float | str | np.generic) for choice in choices):
        array = np.asarray(choices)
        # a mixture such as (1, "a") would turn the number into a text unasked
        if array.dtype.kind in "biuf" or all(isinstance(choice, str) for choice in choices):
            return array
    array = np.empty(len(choices), dtype=object)
    array[:] = list(choices)
    return array


def _keys(study: Experiment, values: Mapping[str, np.ndarray]) -> np.ndarray:
    columns = {name: column.tolist() for name, column in values.items()}
    count = len(columns["seed"])
    if type(study).cell_key is Experiment.cell_key:
        # cells that share their draws share their key: hash each combination once
        known: dict[tuple[Any, ...], int] = {}
        keys = np.empty(count, dtype=np.int64)
        used = [columns["seed"], *(columns[name] for name in study.random_axes)]
        for run, parts in enumerate(zip(*used, strict=True)):
            if parts not in known:
                known[parts] = study.cell_key({name: columns[name][run] for name in columns})
            keys[run] = known[parts]
        return keys
    cells = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return np.fromiter((study.cell_key(cell) for cell in cells), np.int64, count)
