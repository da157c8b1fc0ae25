"""Committed results: what a study gave, small enough for a repository.

``<study>-<scale>.parquet`` has one row per cell: coordinates as columns, then the outputs, those
with dimensions of their own as flat lists. ``<study>-<scale>.json`` has all that is needed to make
the Dataset of it again: parameters, dimensions, coordinates, provenance; and the hash of the
Parquet file. Floats keep five significant digits; all else is exact. Files are believed only if
they fit each other and the study (``fitting``).
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

from rarefy.core.contracts import Experiment
from rarefy.core.errors import RunError, UsageError, bad_value
from rarefy.core.place import Place, Remote, Unreachable, as_place
from rarefy.core.writing import check_place, write_whole
from rarefy.sweep.fitting import FORMAT, check_form, check_study, fit_rows
from rarefy.sweep.renames import description_of_today, table_of_today
from rarefy.sweep.spec import E, Find, differences, spec_of

MAX_BYTES = 1_000_000
SIGNIFICANT_BITS = 17
"""A relative error under 1e-5: five significant digits."""


def check_folder(study: Experiment, scale: str, dtype: str, folder: Place | str) -> None:
    """Refuse, before a long run, a folder that cannot be written to, or holds this study and scale
    with other parameters or more seeds: files are named by study and scale alone. What these files
    say of themselves is their record: they live in repositories, where no other would come along.
    """
    folder = as_place(folder, "results")
    beside = folder / f"{study.name}-{scale}.json"
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"results={str(folder)!r}: is a file; name a folder")
    if isinstance(beside, Path):
        check_place(beside, "results", replaced=True)
    else:
        _check_writable(beside.parent)
    table = beside.with_suffix(".parquet")
    if beside.exists():
        described = read_description(beside)
        differ, told = differences(described["spec"], study, dtype), described["attributes"]
        seeds = described["spec"]["parameters"]["seeds"]
        if seeds > study.seeds and told["cells_done"] == told["cells"] and table.exists():
            differ.append(f"has {seeds} seeds, these would be fewer")
        if differ:
            raise UsageError(f"results: {beside} {differ[0]}; name another folder")
    elif table.exists():
        raise UsageError(f"results: {table} was not written by rarefy (no JSON); move it away")


def _check_writable(folder: Remote) -> None:
    """What is not allowed there is known only when it was tried."""
    probe = folder / f".rarefy-{secrets.token_hex(8)}"
    try:
        probe.write_bytes(b"")
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise bad_value("results", str(folder), f"cannot be written to: {error}") from error


def find_finished(study: Experiment, scale: str, dtype: str, folder: Place | str) -> Place | None:
    """The results of this very study and scale in a folder, whole and with at least as many seeds:
    there is nothing to run. A file that is damaged is refused, not taken for one that is missing.
    """
    path = as_place(folder, "results") / f"{study.name}-{scale}.parquet"
    if not path.exists() or not path.with_suffix(".json").exists():
        return None
    described, _ = read_pair(path)
    spec, told = described["spec"], described["attributes"]
    enough = spec["parameters"]["seeds"] >= study.seeds and told["cells"] == told["cells_done"]
    return path if enough and not differences(spec, study, dtype) else None


def write_results(study: Experiment, scale: str, dataset: xr.Dataset, folder: Place | str) -> Place:
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
        "parquet": {"blake2b": _hash(buffer.getvalue())},
    }
    text = (json.dumps(description, indent=1) + "\n").encode()
    stem = as_place(folder, "results") / f"{study.name}-{scale}"
    contents: dict[Place, bytes] = {stem.with_name(f"{stem.name}.parquet"): buffer.getvalue()}
    contents[stem.with_name(f"{stem.name}.json")] = text
    for path, content in contents.items():
        if len(content) > MAX_BYTES:
            raise RunError(
                f"{path} would have {len(content):,} bytes, at most {MAX_BYTES:,} are allowed; "
                "record fewer steps or fewer outputs"
            )
    for path, content in contents.items():
        write_whole(path, content)
    return next(iter(contents))


def read_results(path: Place | str, find: Find[E]) -> tuple[E, str, xr.Dataset]:
    """Experiment, scale and Dataset from the path or address of either file; ``find`` knows
    experiments by name. The file that does not fit is named."""
    path = as_place(path, "results")
    described, content = read_pair(path)
    try:
        at = path.with_suffix(".json")
        renamed = find(described["spec"]["study"]).renamed
        described = description_of_today(renamed, described)
        study = check_study(described, find)
        at = path.with_suffix(".parquet")
        table = table_of_today(renamed, pq.read_table(io.BytesIO(content)))
        dataset = fit_rows(described, table)
    except (
        *(OSError, ArithmeticError, ValueError, KeyError, TypeError, AttributeError),
        pa.ArrowException,
    ) as error:
        # (of our own complaints the words are enough)
        kind = "" if type(error) in (ValueError, UsageError) else f"{type(error).__name__}: "
        raise RunError(f"cannot use results {at}: {kind}{error}") from error
    return study, described["scale"], dataset


def read_description(path: Place) -> dict[str, Any]:
    """What results say of themselves, from the JSON file at ``path``."""
    try:
        described: dict[str, Any] = json.loads(path.read_text("utf-8"))
        check_form(described)
    except Unreachable:
        raise
    except OSError as error:
        raise RunError(f"cannot read results {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RunError(f"cannot read results {path}: {error}") from error
    return described


def read_pair(path: Place) -> tuple[dict[str, Any], bytes]:
    """The description and the bytes beside it, which are those that were written (those of files
    older than their hash: a whole Parquet file)."""
    described = read_description(path.with_suffix(".json"))
    path = path.with_suffix(".parquet")
    try:
        content = path.read_bytes()
    except Unreachable:
        raise
    except OSError as error:
        raise RunError(f"cannot read results {path}: {error.strerror or error}") from error
    told = described.get("parquet")
    try:
        if told is None:
            pq.read_metadata(io.BytesIO(content))
        elif not isinstance(told, dict) or told.get("blake2b") != _hash(content):
            raise ValueError("its hash is not the one in the JSON beside it")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunError(
            f"results {path} are damaged ({error}); remove both files and write them again"
        ) from error
    return described, content


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def find_results(folder: Place | str) -> list[Place]:
    """The committed results in a folder, by study, paper scale first; none if it is not there. One
    without its Parquet file is found too, so that it is not passed over in silence."""
    folder = as_place(folder, "results")
    # (what is no file, such as a named pipe, is never opened)
    found: set[Place] = {p for p in folder.glob("*.parquet") if p.with_suffix(".json").is_file()}
    beside: set[Place] = {p.with_suffix(".parquet") for p in folder.glob("*.json") if p.is_file()}
    found |= {p for p in beside - found if _described(p)}

    def published_first(path: Place) -> tuple[str, bool, str]:
        name, _, scale = path.stem.rpartition("-")
        return name, scale != "paper", scale

    return sorted(found, key=published_first)


def _described(path: Place) -> bool:
    try:
        read_description(path.with_suffix(".json"))
    except RunError:
        return False
    return True


def _column(values: np.ndarray) -> pa.Array:
    """Shape (cell,) as it is; shape (cell, ...) as one flat list per cell."""
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
