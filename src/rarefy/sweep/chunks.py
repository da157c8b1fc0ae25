"""The files of a store: which must be there, whether they are whole, and that the disk has them.

Every chunk ends with a checksum (crc32c) of its compressed bytes. It costs 4 bytes, is looked at
before anything is decompressed, and finds every single flipped bit; zstd's own misses those in its
header. What is said here needs no study: a store can be checked where its study is not installed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import google_crc32c
import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from rarefy.core.contracts import NONFINITE_STEP
from rarefy.core.place import Place, Unreachable
from rarefy.core.text import as_argument
from rarefy.core.writing import flush
from rarefy.sweep.zarr_places import for_zarr

CODECS = (ZstdCodec(), Crc32cCodec())
LOST, MISSING, DAMAGED = "is missing or damaged", "is missing", "is damaged"
AT_ONCE = 8
"""Chunks that are waited for together, on disk or from afar."""
NEEDED = ("done", "run_seconds", "key")
"""Arrays of every store, never empty where a cell is finished."""


@dataclass(frozen=True)
class Damage:
    """A file that is not as it was written, and the finished cells whose results it held (none: it
    can be made again without computing anything). Not ``certain``: stores without checksums have
    no file for a chunk that is all NaN."""

    array: str
    file: str
    what: str
    cells: np.ndarray
    certain: bool = True

    @property
    def is_description(self) -> bool:
        """Without it none of the array's chunks can be read."""
        return self.file.endswith("zarr.json")


def find_damage(
    path: Place, shapes: Mapping[str, tuple[int, ...]] | None = None, runs: int = 0
) -> list[Damage]:
    """All damage to the store at ``path``. ``shapes``: arrays that must be there, with their shape
    behind the run axis, which has at least ``runs``; without them only those that are there can be
    looked at."""
    shapes = dict.fromkeys(NEEDED, ()) | dict(shapes or {})
    finished, found = _finished(path, runs)
    others = (each for each in path.iterdir() if each.name not in shapes)
    there = {each.name for each in others if (each / "zarr.json").exists()}
    for name in sorted((there | shapes.keys()) - {"done"}):
        found += _damage_to(path, name, shapes.get(name), finished, runs)
    return found


def _finished(path: Place, runs: int) -> tuple[np.ndarray, list[Damage]]:
    """Which cells are finished, and damage to the record of it: all cells of a chunk that cannot
    be read may have been."""
    array = open_array(path, "done", ())
    if array is None or array.shape[0] < runs:
        nothing = np.zeros(0, dtype=int)
        return nothing > 0, [Damage("done", "done/zarr.json", LOST, nothing)]
    found = [
        Damage("done", file, what, cells)
        for file, what, cells in _suspects(path, "done", array)
        if what == DAMAGED
    ]
    if not found:
        return np.asarray(array[:]), []
    finished, lost = np.zeros(array.shape[0], dtype=bool), {each.file for each in found}
    for number, cells in enumerate(_cells(array)):
        if _file("done", array, number) not in lost:
            finished[cells] = array[cells[0] : cells[-1] + 1]
    return finished, found


def _damage_to(
    path: Place, name: str, shape: tuple[int, ...] | None, finished: np.ndarray, runs: int
) -> list[Damage]:
    array = open_array(path, name, shape)
    last = np.flatnonzero(finished).max(initial=-1)
    if array is None or array.shape[0] < max(runs, last + 1):
        return [Damage(name, f"{name}/zarr.json", LOST, np.flatnonzero(finished))]
    # coordinates follow from the spec, and old stores have no file for a chunk of zeros
    result = name in NEEDED or bool(array.fill_value != array.fill_value)
    checked = has_checksums(array)
    certain = checked or name in (*NEEDED, NONFINITE_STEP.name)
    found = []
    for file, what, cells in _suspects(path, name, array):
        cells = cells[cells < len(finished)]
        cells = cells[finished[cells]]
        held = cells if result else cells[:0]
        if what == DAMAGED:
            found.append(Damage(name, file, what, held))
        elif len(cells) and (result or checked):
            found.append(Damage(name, file, what, held, certain))
    return found


def open_array(path: Place, name: str, shape: tuple[int, ...] | None = None) -> zarr.Array | None:
    """The array, if its description can be read and is that of an array of a store."""
    try:
        array = zarr.open_array(for_zarr(path / name), mode="r", zarr_format=3)
        whole = array.ndim >= 1 and array.chunks[1:] == array.shape[1:] and array.chunks[0] > 0
        first = array.metadata.encode_chunk_key((0,) * array.ndim)
        whole = whole and f"{name}/{first}" == _file(name, array, 0)
        if shape is not None:
            whole = whole and array.shape[1:] == shape
    except Unreachable:
        raise
    except Exception:  # whatever meets the wrong bytes first
        return None
    return array if whole else None


def has_checksums(array: zarr.Array) -> bool:
    return any(isinstance(codec, Crc32cCodec) for codec in array.compressors)


def _cells(array: zarr.Array) -> Iterator[np.ndarray]:
    """The cells of each chunk."""
    for start in range(0, array.shape[0], array.chunks[0]):
        yield np.arange(start, min(start + array.chunks[0], array.shape[0]))


def _file(name: str, array: zarr.Array, number: int) -> str:
    return f"{name}/c/{number}" + "/0" * (array.ndim - 1)


def _suspects(path: Place, name: str, array: zarr.Array) -> Iterator[tuple[str, str, np.ndarray]]:
    """File, state and cells of each chunk that is missing or damaged."""
    checked, chunks = has_checksums(array), list(_cells(array))
    # what is done is read too, all at once if that goes well: each reading takes its time
    apart = name == "done" and not _readable(array, slice(None))
    files = [_file(name, array, number) for number in range(len(chunks))]
    contents = _contents(path, files)
    for file, cells, content in zip(files, chunks, contents, strict=True):
        if content is None:
            yield file, MISSING, cells
            continue
        one = slice(cells[0], cells[-1] + 1)
        whole = _fits(content, array) if checked else _readable(array, one)
        if not whole or (apart and not _readable(array, one)):
            yield file, DAMAGED, cells


def _contents(path: Place, files: list[str]) -> Iterator[bytes | None]:
    """Of each file; None where it is missing. Answers from afar are waited for together."""

    def content(file: str) -> bytes | None:
        try:
            return (path / file).read_bytes()
        except FileNotFoundError:
            return None

    if isinstance(path, Path):
        yield from map(content, files)
        return
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(0, len(files), AT_ONCE):
            yield from pool.map(content, files[first : first + AT_ONCE])


def _fits(content: bytes, array: zarr.Array) -> bool:
    told = int.from_bytes(content[-4:], "little")
    if len(content) <= 4 or google_crc32c.value(content[:-4]) != told:
        return False
    # who makes the checksum fit may still promise kilobytes that become gigabytes
    full = math.prod(array.chunks) * array.dtype.itemsize
    return array.dtype.kind in "OT" or _unpacked(content) in (full, None)


def _unpacked(content: bytes) -> int | None:
    """The bytes that a frame of zstd says it becomes (RFC 8878, 3.1.1.1); None: it is no such."""
    if content[:4] != b"\x28\xb5\x2f\xfd":
        return None
    kind, single, word = content[4] >> 6, content[4] >> 5 & 1, content[4] & 3
    start = 6 - single + (0, 1, 2, 4)[word]
    size = (single, 2, 4, 8)[kind]
    number = int.from_bytes(content[start : start + size], "little")
    return (number + 256 if size == 2 else number) if size else -1


def _readable(array: zarr.Array, cells: slice) -> bool:
    """All that can be said of chunks without a checksum."""
    try:
        array[cells]
    except Unreachable:
        raise
    except Exception:  # whichever codec meets it first
        return False
    return True


def in_words(path: Place, found: list[Damage]) -> str:
    """One line about damage, and what to do."""
    # (chunks of an array whose description is lost may all be whole)
    lost = {int(cell) for each in found if not each.is_description for cell in each.cells}
    again = f", and the same command then computes {len(lost)} cells again" if lost else ""
    return (
        f"store {path} is damaged: {in_short(found)}; "
        f"'rarefy check {as_argument(path)} --repair' keeps what is whole{again}"
    )


def in_short(found: list[Damage]) -> str:
    first = found[0]
    cells = f" (cells {first.cells[0]} to {first.cells[-1]})" if len(first.cells) else ""
    more = f", and {len(found) - 1} more files" if len(found) > 1 else ""
    return f"{first.file} {first.what}{cells}{more}"


def chunk_files(path: Path, name: str, array: zarr.Array, cells: np.ndarray) -> set[Path]:
    """The files of some cells, and the folders that hold their names."""
    files = {path / _file(name, array, number) for number in np.unique(cells // array.chunks[0])}
    return files | {folder for file in files for folder in file.parents[: array.ndim]}


def flush_all(paths: Iterable[Path]) -> None:
    """Wait until the disk has these files and folders, asked for at once: a file system then
    commits many together."""
    list(_flushers(os.getpid()).map(flush, paths))


@lru_cache(maxsize=1)
def _flushers(process: int) -> ThreadPoolExecutor:
    """Kept, but not beyond a fork: its threads stay behind."""
    return ThreadPoolExecutor(AT_ONCE)
