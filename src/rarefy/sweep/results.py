"""Committed results: what a study gave, small enough for a repository.

``<study>-<scale>.parquet`` has one row a cell: its coordinates as columns, then the outputs, those
with dimensions of their own as flat lists. ``<study>-<scale>.json`` has all that is needed to make
the Dataset of it again: parameters, dimensions, coordinates, provenance. Floats keep five
significant digits; all else is exact.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

from rarefy.core.contracts import Study
from rarefy.core.errors import RunError, UsageError
from rarefy.sweep.spec import differences, spec_of, study_of

MAX_BYTES = 1_000_000
SIGNIFICANT_BITS = 17
"""A relative error under 1e-5: five significant digits."""
FORMAT = 1


def check_folder(study: Study, scale: str, dtype: str, folder: Path | str) -> None:
    """Refuse, before a long run, a folder that is a file or holds this study and scale with other
    parameters: files are named by study and scale alone."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"results={str(folder)!r}: is a file; name a folder")
    beside = folder / f"{study.name}-{scale}.json"
    if beside.exists():
        stored = json.loads(beside.read_text("utf-8")).get("spec")
        differ = differences(stored, spec_of(study, dtype)) if stored else []
        if differ:
            raise UsageError(f"results: {beside} {differ[0]}; name another folder")


def write_results(study: Study, scale: str, dataset: xr.Dataset, folder: Path | str) -> Path:
    """Write both files and give the path of the Parquet one."""
    done, cells = int(dataset.attrs["cells_done"]), int(dataset.attrs["cells"])
    if done < cells:
        raise UsageError(f"only {done} of {cells} cells are done; results are written when all are")
    cell_dims = (*study.axes, "seed")
    flat = dataset.transpose(*cell_dims, ...).stack(cell=cell_dims, create_index=False)
    flat = flat.transpose("cell", ...)
    columns: dict[str, Any] = {name: _column(flat[name].values) for name in cell_dims}
    for name in dataset.data_vars:
        columns[str(name)] = _column(shorten(flat[name].values))
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(columns),
        buffer,
        compression="zstd",
        compression_level=19,
        # the bytes of shortened floats compress a quarter better when like lies beside like
        use_dictionary=False,
        use_byte_stream_split=[
            str(name) if set(variable.dims) == set(cell_dims) else f"{name}.list.element"
            for name, variable in dataset.data_vars.items()
        ],
    )
    description = {
        "format": FORMAT,
        "spec": spec_of(study, dataset.attrs["dtype"]),
        "scale": scale,
        "cell_dims": list(cell_dims),
        "coordinates": {
            str(name): {"dtype": values.dtype.str, "values": values.values.tolist()}
            for name, values in dataset.coords.items()
        },
        "variables": {
            str(name): {
                "dims": [str(dim) for dim in variable.dims if dim not in cell_dims],
                "dtype": variable.dtype.str,
                "attributes": dict(variable.attrs),
            }
            for name, variable in dataset.data_vars.items()
        },
        "attributes": {
            **dataset.attrs,
            "scale": scale,
            "parameters": json.loads(dataset.attrs["parameters"]),
            "provenance": json.loads(dataset.attrs["provenance"]),
        },
    }
    text = (json.dumps(description, indent=1) + "\n").encode()
    stem = Path(folder) / f"{study.name}-{scale}"
    contents = {stem.with_name(f"{stem.name}.parquet"): buffer.getvalue()}
    contents[stem.with_name(f"{stem.name}.json")] = text
    for path, content in contents.items():
        if len(content) > MAX_BYTES:
            raise RunError(
                f"{path} would have {len(content):,} bytes, at most {MAX_BYTES:,} are allowed; "
                "record fewer steps or fewer outputs"
            )
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            partial = path.with_name(f".{path.name}.partial")
            partial.write_bytes(content)
            os.replace(partial, path)
    except OSError as error:
        raise RunError(f"cannot write results to {folder}: {error.strerror or error}") from error
    return next(iter(contents))


def read_results(path: Path | str) -> tuple[Study, str, xr.Dataset]:
    """Study, scale and Dataset from the path of either file."""
    path = Path(path)
    try:
        description = json.loads(path.with_suffix(".json").read_text("utf-8"))
        table = pq.read_table(path.with_suffix(".parquet"))
        if description["format"] != FORMAT:
            raise ValueError(f"format {description['format']}, known is {FORMAT}")
        study = study_of(description["spec"])
        return study, description["scale"], _dataset(description, table)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        if isinstance(error, UsageError):
            raise  # an unknown study explains itself
        reason = f"{type(error).__name__}: {error}"
        raise RunError(f"cannot read results {path}: {reason}") from error


def find_results(folder: Path | str) -> list[Path]:
    """The committed results in a folder, by study, paper scale first; none if it is not there."""
    found = [p for p in Path(folder).glob("*.parquet") if p.with_suffix(".json").exists()]

    def published_first(path: Path) -> tuple[str, bool, str]:
        name, _, scale = path.stem.rpartition("-")
        return name, scale != "paper", scale

    return sorted(found, key=published_first)


def _dataset(description: dict[str, Any], table: pa.Table) -> xr.Dataset:
    coordinates = {
        name: np.asarray(entry["values"], dtype=entry["dtype"])
        for name, entry in description["coordinates"].items()
    }
    cell_dims = description["cell_dims"]
    variables = {}
    for name, entry in description["variables"].items():
        dims = [*cell_dims, *entry["dims"]]
        column = table.column(name).combine_chunks()
        values = column.flatten() if entry["dims"] else column
        shape = tuple(len(coordinates[dim]) for dim in dims)
        array = values.to_numpy(zero_copy_only=False).astype(entry["dtype"]).reshape(shape)
        variables[name] = (dims, array, entry["attributes"])
    attributes = dict(description["attributes"])
    for name in ("parameters", "provenance"):
        attributes[name] = json.dumps(attributes[name])
    return xr.Dataset(variables, coordinates, attributes)


def _column(values: np.ndarray) -> pa.Array:
    """Shape (cell,) as it is; shape (cell, ...) as one flat list a cell."""
    if values.ndim == 1:
        return pa.array(values.tolist() if values.dtype.kind in "UO" else values)
    rows = len(values)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(values.reshape(-1)), int(np.prod(values.shape[1:], dtype=int)) if rows else 1
    )


def shorten(values: np.ndarray, bits: int = SIGNIFICANT_BITS) -> np.ndarray:
    """Floats rounded to so many significant bits (zeros compress, decimal digits do not). Whole
    numbers such as steps and counts, NaN and infinity stay exactly as they are."""
    if values.dtype.kind != "f":
        return values
    finite = values[np.isfinite(values)]
    if (finite == np.round(finite)).all():
        return values
    mantissa, exponent = np.frexp(values.astype(np.float64))
    rounded = np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)
    # rounding up the largest numbers would make them infinite
    largest = np.finfo(values.dtype).max
    return np.where(np.abs(rounded) > largest, values, rounded).astype(values.dtype)
