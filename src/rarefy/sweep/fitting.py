"""Whether committed results are what they say they are.

A description (the JSON) must be that of a study as it is today, and agree with itself; rows (the
Parquet) are put where their coordinates say, each cell exactly once. Every complaint is a
``ValueError`` in words that follow the name of a file.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr

from rarefy.sweep.arrays import all_outputs, coordinates_of
from rarefy.sweep.grid import grid_of
from rarefy.sweep.spec import E, Find, differences, experiment_of, spec_hash, spec_kind

FORMAT = 1


def check_form(described: Any) -> None:
    """That something read from a file has the fields of a description, each of its kind."""
    if not isinstance(described, dict):
        raise ValueError("is no description of results")
    if described.get("format") != FORMAT:
        raise ValueError(f"has format {described.get('format')}, known is {FORMAT}")
    kinds = {
        **{"scale": str, "cell_dims": list, "coordinates": dict},
        **{"variables": dict, "attributes": dict},
    }
    for name, kind in kinds.items():
        if not isinstance(described.get(name), kind):
            raise ValueError(f"is damaged: {name} is missing or of another kind")
    if wrong := spec_kind(described.get("spec")):
        raise ValueError(f"is damaged: {wrong}")
    cells = [described["attributes"].get(name) for name in ("cells", "cells_done")]
    if not all(type(count) is int for count in cells):
        raise ValueError("is damaged: attributes.cells or cells_done is no whole number")


def check_study(described: dict[str, Any], find: Find[E]) -> E:
    """The study of a description that fits it in every field; else the first that does not."""
    spec, told, scale = described["spec"], described["attributes"], described["scale"]
    study = experiment_of(spec, find)
    if found := differences(spec, study, spec["dtype"]):
        raise ValueError(found[0])
    if scale not in type(study).scales:
        raise ValueError(f"has scale {scale!r}, which {study.name} does not have")
    cells = len(grid_of(study))
    derived = {
        **{name: spec[name] for name in ("study", "version", "dtype", "parameters")},
        **{
            "scale": scale,
            "spec_hash": spec_hash(spec, study.renamed),
            "cells": cells,
            "cells_done": cells,
        },
    }
    for name, value in derived.items():
        if told.get(name) != value:
            raise ValueError(f"does not fit itself: attributes.{name} should be {value}")
    if described["cell_dims"] != [*study.axes, "seed"]:
        raise ValueError(f"has cells by {described['cell_dims']}, {study.name} by {study.axes}")
    expected = coordinates_of(study)
    if described["coordinates"].keys() != expected.keys():
        raise ValueError(f"has other coordinates than {study.name}")
    for name, values in expected.items():
        if not _same(_array(described["coordinates"][name]), values):
            raise ValueError(f"has other values of {name} than its parameters give")
    declared = {output.name: list(output.dims) for output in all_outputs(study)}
    if declared != {name: entry["dims"] for name, entry in described["variables"].items()}:
        raise ValueError(f"has other outputs than {study.name}")
    return study


def fit_rows(described: dict[str, Any], table: pa.Table) -> xr.Dataset:
    """The Dataset of a description and its rows, which may come in any order."""
    coordinates = {name: _array(entry) for name, entry in described["coordinates"].items()}
    cell_dims = described["cell_dims"]
    places = _places(table, {name: coordinates[name] for name in cell_dims})
    variables = {}
    for name, entry in described["variables"].items():
        dims = [*cell_dims, *entry["dims"]]
        column = table.column(name).combine_chunks()
        values = column.flatten() if entry["dims"] else column
        rows = values.to_numpy(zero_copy_only=False).reshape(len(places), -1)
        array = np.empty(rows.shape, dtype=entry["dtype"])
        array[places] = rows
        shape = tuple(len(coordinates[dim]) for dim in dims)
        variables[name] = (dims, array.reshape(shape), entry["attributes"])
    attributes = dict(described["attributes"])
    for name in ("parameters", "provenance"):
        attributes[name] = json.dumps(attributes[name])
    return xr.Dataset(variables, coordinates, attributes)


def _places(table: pa.Table, axes: dict[str, np.ndarray]) -> np.ndarray:
    """Which cell each row is, shape (row,); every cell must be there once."""
    sizes = tuple(len(values) for values in axes.values())
    cells = int(np.prod(sizes))
    if table.num_rows != cells:
        raise ValueError(f"has {table.num_rows} rows for {cells} cells")
    along = []
    for name, values in axes.items():
        # (a text is not cut to the length of those that are known)
        kind = values.dtype if values.dtype.kind != "U" else str
        column = np.asarray(table.column(name).to_numpy()).astype(kind)
        order = np.argsort(values)
        found = order[np.searchsorted(values[order], column).clip(max=len(values) - 1)]
        if not np.array_equal(values[found], column):
            strange = column[values[found] != column][0]
            raise ValueError(f"has a row with {name}={strange}, which is none of its cells")
        along.append(found)
    places = np.ravel_multi_index(along, sizes)
    if len(np.unique(places)) < cells:
        raise ValueError("has rows of the same cell twice, and others not at all")
    return places


def _same(stored: np.ndarray, given: np.ndarray) -> bool:
    """The last digit of a number that is computed depends on the version of NumPy."""
    if stored.shape == given.shape and given.dtype.kind == "f":
        return np.allclose(stored, given, rtol=1e-9, atol=0, equal_nan=True)
    return np.array_equal(stored, given)


def _array(entry: dict[str, Any]) -> np.ndarray:
    return np.asarray(entry["values"], dtype=entry["dtype"])
