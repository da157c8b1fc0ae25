"""Labelled rows that are never in memory all at once: what they are read from, piece by piece.

Array files, Parquet by row groups, Dask arrays by blocks, or any pairs of features and labels that
can be gone through again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images.listing import counted
from rarefy.tools.samples.arrays import load_npy, numbers_of
from rarefy.tools.samples.labels import flat_labels, in_order
from rarefy.tools.samples.messages import in_a_line, no_column
from rarefy.tools.samples.standardizing import ColumnMoments
from rarefy.tools.samples.tables import LABEL, chosen_columns, features_of, labels_of

CHUNK_BYTES = 1 << 26
"""Of the features that are in memory at a time, where it is for us to choose."""
PARQUET = (".parquet", ".pq")
KINDS = "a .npy file, a Parquet file or a folder of them"

Pair = tuple[NDArray[Any], Any]
"""Features (m, d) and their m labels."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """Rows with labels, in pieces; ``read(piece)`` gives a piece's pairs."""

    name: str
    pieces: Iterable[Any]
    read: Callable[[Any], Iterable[Pair]]
    notes: tuple[str, ...] = ()


def open_chunks(
    data: object,
    labels: object = None,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
) -> Chunks:
    """data: a .npy file, array, memory map or tensor (n, d) with its ``labels`` (also a .npy file);
    a Parquet file or a folder of them (``label``, ``columns``); a Dask array with its labels; or
    pairs of features and labels, as a list or as a function that begins to give them anew."""
    table = isinstance(data, str | Path) and Path(data).suffix.lower() != ".npy"
    if not table:
        for name, given in (("label", label), ("columns", columns)):
            if given is not None:
                raise bad_value(name, given, "does not fit what is no table")
    if table and labels is not None:
        raise bad_value("labels", str(labels)[:80], "does not fit a table, which has its column")
    if isinstance(data, str | Path):
        path = Path(data).expanduser()
        return _of_parquet(path, label or LABEL, columns) if table else _of_npy(path, labels)
    if hasattr(data, "to_delayed"):
        return _of_dask(data, labels)
    if isinstance(data, np.ndarray | Tensor):
        rows = _rows(data)
        return Chunks("arrays", _cut(rows, _labels(labels, len(rows))), _itself)
    if labels is not None:
        raise bad_value("labels", type(labels).__name__, "does not fit pairs, which have theirs")
    if callable(data):
        return Chunks("chunks", _Anew(data), _itself)
    if hasattr(data, "__next__") or not hasattr(data, "__iter__"):
        kind = type(data).__name__
        raise bad_value("data", kind, "is read several times: give a list, or a function that "
                        "returns the pairs anew")  # fmt: skip
    return Chunks("chunks", data, _itself)


# ----------------------------------------------------------------------------------- what they hold


@dataclass
class Look:
    """What one reading of the data says of them."""

    sizes: list[int] = field(default_factory=list)
    """Rows of each piece."""
    width: int = 0
    names: set[str] = field(default_factory=set)
    moments: ColumnMoments = field(default_factory=ColumnMoments)
    fingerprint: str = ""
    """Changes with labels, sizes, and the first and last row of each chunk."""

    def add(self, other: Look) -> None:
        if self.width and other.width != self.width:
            at, width = sum(self.sizes), other.width
            raise UsageError(f"rows from {at} on have {width} features, not {self.width}")
        self.sizes += other.sizes
        self.width = other.width
        self.names |= other.names
        self.moments.merge(other.moments)
        both = (self.fingerprint + other.fingerprint).encode()
        self.fingerprint = hashlib.blake2b(both, digest_size=16).hexdigest()

    @property
    def classes(self) -> tuple[str, ...]:
        return in_order(self.names)


def look(read: Callable[[Any], Iterable[Pair]], moments: bool, piece: Any) -> Look:
    """One piece, its features (without ``moments``: only their ends) and labels."""
    found, digest, size = Look(), hashlib.blake2b(digest_size=16), 0
    for features, labels in read(piece):
        rows = _rows(features)
        known, codes, values = found.width, *_coded(labels, len(rows))
        if known and rows.shape[1] != known:
            raise UsageError(f"rows of {rows.shape[1]} features and of {known}")
        found.width, size = rows.shape[1], size + len(rows)
        found.names |= {str(value) for value in values}
        if moments:
            found.moments.add(rows)
        digest.update(np.ascontiguousarray(rows[[0, -1]]).tobytes() + codes.tobytes())
        digest.update(repr((rows.shape, [str(value) for value in values])).encode())
    if size == 0:
        raise UsageError("a piece of the data has no rows")
    found.sizes, found.fingerprint = [size], digest.hexdigest()
    return found


@dataclass(frozen=True, eq=False)
class ReadCoded:
    """Pairs as they are scored: labels as places in ``classes``, features standardised."""

    read: Callable[[Any], Iterable[Pair]]
    classes: tuple[str, ...]
    mean: NDArray[np.float64] | None = None
    divisor: NDArray[np.float64] | None = None

    def __call__(self, piece: Any) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
        places = {name: place for place, name in enumerate(self.classes)}
        for features, labels in self.read(piece):
            rows = _rows(features)
            codes, values = _coded(labels, len(rows))
            if not {str(value) for value in values} <= places.keys():
                raise UsageError("the data changed while they were read: a new label")
            if self.divisor is not None:
                rows = rows.astype(np.float64)
                rows -= self.mean
                rows /= self.divisor
            yield rows, np.array([places[str(value)] for value in values])[codes]


def _coded(labels: object, count: int) -> tuple[NDArray[np.int64], Any]:
    """Places in the labels that occur, and these."""
    flat = flat_labels(labels)
    if len(flat) != count:
        raise bad_value("labels", counted(len(flat), "label"), f"must be {count}, one per row")
    codes, values = pd.factorize(flat)
    if any(not str(value).strip() for value in values):
        raise UsageError("labels: some are empty")
    return codes.astype(np.int64, copy=False), values


def _rows(features: object) -> NDArray[Any]:
    values = numbers_of(features)
    if values.ndim != 2:
        raise bad_value("X", f"shape {values.shape}", "must be (n, d) to be read in pieces")
    return values


# -------------------------------------------------------------------------- what they are read from


class _Anew:
    """A function's pairs, from the first one on each time."""

    def __init__(self, begin: Callable[[], Iterable[Pair]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._begin())


def _itself(pair: Pair) -> Iterable[Pair]:
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise bad_value("data", type(pair).__name__, "must be pairs of features and labels")
    return (tuple(pair),)


def _labels(labels: object, count: int) -> Any:
    if labels is None:
        raise bad_value("labels", None, "must be given: one label per sample")
    found = load_npy(labels) if isinstance(labels, str | Path) else flat_labels(labels)
    if len(found) != count:
        raise bad_value("labels", counted(len(found), "label"), f"must be {count}, one per sample")
    return found


def _step(width: int, itemsize: int) -> int:
    return max(1, CHUNK_BYTES // (width * itemsize))


def _cut(rows: NDArray[Any], labels: Any) -> list[Pair]:
    step = _step(rows.shape[1], rows.itemsize)
    return [(rows[at : at + step], labels[at : at + step]) for at in range(0, len(rows), step)]


def _of_npy(path: Path, labels: object) -> Chunks:
    rows = _rows(load_npy(path, mapped=True))
    beside = path.with_name("labels.npy")
    if labels is None and beside != path and beside.is_file():
        labels = beside
    known, step = _labels(labels, len(rows)), _step(rows.shape[1], rows.itemsize)
    pieces = [(at, known[at : at + step]) for at in range(0, len(rows), step)]
    return Chunks(path.name, pieces, partial(_npy_rows, path.absolute()))


def _npy_rows(path: Path, piece: tuple[int, Any]) -> Iterable[Pair]:
    """Mapped anew for each piece: what was read does not stay in memory."""
    first, labels = piece
    return ((_rows(load_npy(path, mapped=True)[first : first + len(labels)]), labels),)


def _of_dask(data: Any, labels: Any) -> Chunks:
    import dask.array as da

    if data.ndim != 2:
        raise bad_value("X", f"shape {data.shape}", "must be (n, d) to be read in pieces")
    if np.isnan(data.shape[0]):
        raise bad_value("X", "blocks of unknown sizes", "call compute_chunk_sizes() first")
    if labels is None:
        raise bad_value("labels", None, "must be given: one label per sample")
    known = labels if hasattr(labels, "to_delayed") else da.from_array(_labels(labels, len(data)))
    if known.shape != (len(data),):
        raise bad_value("labels", known.shape, f"must be ({len(data)},), one per sample")
    wide = data.rechunk({1: -1})
    blocks = wide.to_delayed()[:, 0], known.rechunk({0: wide.chunks[0]}).to_delayed()
    return Chunks("dask array", list(zip(*blocks, strict=True)), _block)


def _block(piece: tuple[Any, Any]) -> Iterable[Pair]:
    import dask

    return (dask.compute(*piece),)


def _of_parquet(path: Path, label: str, columns: Sequence[str] | None) -> Chunks:
    import pyarrow as pa
    from pyarrow import parquet

    files = [path]
    if path.is_dir():
        files = sorted(file for end in PARQUET for file in path.glob(f"*{end}"))
        if not files:
            raise UsageError(f"{path}: holds no Parquet file; {KINDS} can be read in pieces")
    elif path.suffix.lower() not in PARQUET:
        raise UsageError(f"{path}: cannot be read in pieces; {KINDS} can")
    elif not path.is_file():
        raise UsageError(f"there is no file {path}")
    pieces: list[tuple[str, int]] = []
    try:
        for file in files:
            with parquet.ParquetFile(file) as held:
                for name in (label, *(columns or ())):
                    if name not in held.schema_arrow.names:
                        word = "label" if name == label else "columns"
                        raise no_column(word, name, held.schema_arrow.names, file.name)
                full = range(held.num_row_groups)
                pieces += [
                    (str(file.absolute()), at)
                    for at in full
                    if held.metadata.row_group(at).num_rows
                ]
        if not pieces:
            raise UsageError(f"{path}: has no rows")
        with parquet.ParquetFile(pieces[0][0], buffer_size=1 << 20) as held:
            first = next(held.iter_batches(1024, [pieces[0][1]]))
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path}: cannot be read as a table ({in_a_line(error)})") from None
    begun = pa.Table.from_batches([first])
    chosen, notes = chosen_columns(begun, label, columns, None, path.name)
    features, _ = features_of(begun, chosen, path.name)
    step = _step(features.shape[1], features.itemsize)
    read = partial(_row_group, tuple(chosen), label, step)
    return Chunks(path.stem, pieces, read, notes=tuple(notes))


def _row_group(
    chosen: tuple[str, ...], label: str, step: int, piece: tuple[str, int]
) -> Iterator[Pair]:
    import pyarrow as pa
    from pyarrow import parquet

    path, group = piece
    about = f"{Path(path).name}, row group {group}"
    try:
        # (without a buffer a whole column of the group would be in memory)
        with parquet.ParquetFile(path, buffer_size=1 << 20) as held:
            for batch in held.iter_batches(step, [group], [*chosen, label]):
                table = pa.Table.from_batches([batch])
                yield features_of(table, chosen, about)[0], labels_of(table.column(label))
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{about}: cannot be read ({in_a_line(error)})") from None
