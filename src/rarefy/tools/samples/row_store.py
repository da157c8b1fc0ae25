"""Room for n rows: an array in memory, or a memory map in a folder that an interrupted run finds
again."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from rarefy.core.errors import UsageError
from rarefy.core.reading import quietly, read_json
from rarefy.core.settings import free_memory
from rarefy.core.writing import naming, reserve, write_whole
from rarefy.data.images.listing import spell_bytes
from rarefy.tools.samples.arrays import load_npy

SAVE_EVERY_SECONDS = 2.0


def memory_limit() -> int:
    """Bytes that features may take in memory unless told otherwise: half of what is free."""
    return free_memory(torch.device("cpu")) // 2


class RowStore:
    """``rows`` is filled in order; ``done`` counts the first ones that are.

    With a folder, ``rows`` is the file ``NAME.npy`` there and ``NAME.json`` says what it is made
    from and how far it came: the same ``spec`` goes on there, another one is refused.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        folder: str | Path | None,
        spec: Mapping[str, Any],
        name: str = "features",
        limit: int | None = None,
    ) -> None:
        self.done = 0
        self._saved = time.monotonic()
        self._spec = {**spec, "shape": list(shape), "dtype": np.dtype(dtype).str}
        self._note: Path | None = None
        self.rows: NDArray[Any]
        if folder is None:
            size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            allowed = memory_limit() if limit is None else limit
            if size > allowed:
                raise UsageError(
                    f"{name} of {shape[0]} samples would take {spell_bytes(size)} of memory, "
                    f"{spell_bytes(allowed)} are allowed: name a folder, and they go to disk"
                )
            self.rows = np.empty(shape, dtype)
            return
        place = Path(folder).expanduser()
        data, self._note = place / f"{name}.npy", place / f"{name}.json"
        with naming(data):
            place.mkdir(parents=True, exist_ok=True)
            if self._note.exists():
                self.done = self._found(self._note, data)
                self.rows = self._mapped(data, shape, dtype)
            else:
                self.rows = new_map(data, np.dtype(dtype), shape)
                self._save()

    def _found(self, note: Path, data: Path) -> int:
        """How far an earlier run came with the same."""
        try:
            held = read_json(note)
            spec, done = held["spec"], int(held["done"])
        except (ValueError, KeyError, TypeError):
            raise _damaged(note) from None
        differ = [key for key in self._spec if spec.get(key) != self._spec[key]]
        if differ:
            was, now = spec.get(differ[0]), self._spec[differ[0]]
            raise UsageError(
                f"{data}: was made from another {differ[0]} ({was}, now {now}); choose another "
                "folder, or remove it"
            )
        if not data.exists():
            raise UsageError(f"{data}: is missing; remove {note.name} to start anew")
        if not 0 <= done <= self._spec["shape"][0]:
            raise _damaged(note)
        return done

    def _mapped(self, data: Path, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """The rows on disk, if they are what the note says."""
        try:
            rows = load_npy(data, mapped=True)  # to write it would make a short one longer
        except UsageError:
            raise _damaged(data) from None
        if rows.shape != shape or rows.dtype != np.dtype(dtype):
            raise _damaged(data)
        with quietly():
            return np.lib.format.open_memmap(data, mode="r+")

    def advance(self, done: int) -> None:
        """The first ``done`` rows are filled. Written down every few seconds and at the end."""
        self.done = done
        if self._note is None:
            return
        if done == len(self.rows) or time.monotonic() - self._saved > SAVE_EVERY_SECONDS:
            with naming(self._note):
                self.flush()

    def flush(self) -> None:
        """Rows first, then the note that says they are there."""
        if isinstance(self.rows, np.memmap):
            self.rows.flush()
            self._save()

    def _save(self) -> None:
        assert self._note is not None
        write_whole(self._note, json.dumps({"spec": self._spec, "done": self.done}, indent=1))
        self._saved = time.monotonic()

    def discard(self) -> None:
        """Give up what was begun, on disk too."""
        if self._note is not None:
            self._note.unlink(missing_ok=True)
            self._note.with_suffix(".npy").unlink(missing_ok=True)

    def finished(self) -> NDArray[Any]:
        """The rows, all of them filled; those on disk can no longer be changed by mistake."""
        assert self.done == len(self.rows), "not all rows were filled"
        if isinstance(self.rows, np.memmap):
            return np.load(str(self.rows.filename), mmap_mode="r")
        return self.rows


def new_map(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """A new ``.npy`` file as an array, with room for it on the disk."""
    rows = np.lib.format.open_memmap(path, "w+", dtype, shape)
    reserve(path, path.stat().st_size)
    return rows


def _damaged(path: Path) -> UsageError:
    other = path.with_suffix(".npy" if path.suffix == ".json" else ".json").name
    return UsageError(
        f"{path}: damaged; remove it, and {other}, to start anew (as --overwrite does)"
    )
