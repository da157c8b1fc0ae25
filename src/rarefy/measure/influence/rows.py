"""Features and labels as they were given, read a few rows at a time."""

from __future__ import annotations

import hashlib
import math
import mmap
import threading
from typing import Any, Never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value

MEMORY = 3 << 28
"""Bytes that may be taken unless said otherwise: 768 MiB, so that with what the libraries take for
themselves it stays below a gigabyte."""
_KNOWN_TO_TORCH = {
    np.dtype(name).str
    for name in ("u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8")  # in this machine's byte order
}
_SCANNED = 1 << 22
"""Values looked at in one step of a search."""
_HASHED_ROWS = 4096
_NAMED_ROWS = 5
TOO_LARGE = (
    "features: all are finite, but some so large that their fourth powers are not; "
    "divide them by a constant"
)


def is_mapped(features: NDArray[Any]) -> bool:
    """Whether they lie in a file that is read as it is needed."""
    under: Any = features
    while isinstance(under, np.ndarray):
        under = under.base
    return isinstance(under, mmap.mmap)


class Rows:
    """(n, d) features of any real type (an array or a memory map, never copied whole) and labels
    0 .. classes - 1, of which some may have no row."""

    def __init__(
        self, features: NDArray[Any], labels: NDArray[Any], classes: int, before: int = 0
    ) -> None:
        """``before``: rows of the data that came before these, for messages."""
        features, labels = np.asarray(features), np.asarray(labels)
        if classes < 1:
            raise bad_value("classes", classes, "must be at least 1")
        if features.ndim != 2 or features.shape[1] == 0:
            raise bad_value("features", features.shape, "must have the shape (samples, features)")
        if features.dtype.kind not in "buif":
            raise bad_value("features", str(features.dtype), "must be real numbers")
        if labels.shape != (len(features),):
            raise bad_value("labels", labels.shape, f"must be one for each of {len(features)} rows")
        if labels.dtype.kind not in "iu":
            raise bad_value("labels", str(labels.dtype), "must be whole numbers")
        outside = (labels < 0) | (labels >= classes)
        if outside.any():
            first = labels[outside][0].item()
            raise bad_value("labels", first, f"must be in 0..{classes - 1}")
        self.features, self.labels, self.classes = features, labels, classes
        self._before = before
        self._rooms = threading.local()
        self.counts: NDArray[np.int64] = np.bincount(labels, minlength=classes).astype(np.int64)
        # within a class in the order of the data, so that a memory map is read forwards
        self._order = np.argsort(labels, kind="stable")
        self._start = np.concatenate([[0], np.cumsum(self.counts)])

    def __len__(self) -> int:
        return len(self.features)

    @property
    def width(self) -> int:
        return int(self.features.shape[1])

    def of_class(self, label: int, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
        """Row numbers of a class, ascending, of those in [first, last)."""
        mine: NDArray[np.int64] = self._order[self._start[label] : self._start[label + 1]]
        if first == 0 and (last is None or last >= len(self)):
            return mine
        ends = np.searchsorted(mine, [first, len(self) if last is None else last])
        return mine[ends[0] : ends[1]]

    def raw(self, indices: NDArray[np.int64], device: torch.device | str = "cpu") -> Tensor:
        """Some rows as a new tensor on a device, of their own type where torch knows it: an eighth
        of the bytes for pixels."""
        picked = self.features[indices]
        if picked.dtype.str not in _KNOWN_TO_TORCH:
            picked = picked.astype(np.float64)
        return torch.from_numpy(picked).to(device)

    def take(self, indices: NDArray[np.int64], device: torch.device | str = "cpu") -> Tensor:
        """Some rows as a new float64 tensor on a device."""
        return self.raw(indices, device).to(torch.float64)

    def borrow(self, indices: NDArray[np.int64], device: torch.device | str = "cpu") -> Tensor:
        """The same until this thread borrows again: where large tensors are made and freed in turn,
        the allocator keeps a hundred megabytes of them."""
        raw = self.raw(indices, device)
        return raw if raw.dtype == torch.float64 else self.room(raw.shape, raw.device).copy_(raw)

    def room(self, shape: tuple[int, ...], device: torch.device | str = "cpu") -> Tensor:
        """Float64 without values: this thread's, always the same."""
        size = math.prod(shape)
        if not hasattr(self._rooms, "room") or len(self._rooms.room) < size:
            self._rooms.room = torch.empty(size, dtype=torch.float64, device=device)
        room: Tensor = self._rooms.room[:size].view(shape)
        return room

    def complain_of_nonfinite(self) -> Never:
        """Look at every row (only after something went wrong) and say which are not finite."""
        bad = []
        step = max(1, _SCANNED // self.width)
        for first in range(0, len(self), step):
            finite = np.isfinite(self.features[first : first + step]).all(axis=1)
            bad.append(np.flatnonzero(~finite) + first)
        rows = np.concatenate(bad) if bad else np.zeros(0, dtype=np.int64)
        if len(rows) == 0:
            raise UsageError(TOO_LARGE)
        named = ", ".join(str(self._before + row) for row in rows[:_NAMED_ROWS])
        more = ", ..." if len(rows) > _NAMED_ROWS else ""
        raise UsageError(
            f"features: {len(rows)} of {len(self)} rows hold NaN or infinite values "
            f"(rows {named}{more})"
        )

    def fingerprint(self) -> str:
        """Changes with the labels, the shape, the type and with the features of a few thousand
        evenly spaced rows; a change to others alone is not seen."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.features.shape, self.features.dtype.str, self.classes)).encode())
        digest.update(np.ascontiguousarray(self.labels, dtype=np.int64).tobytes())
        if len(self):
            picked = np.linspace(0, len(self) - 1, min(len(self), _HASHED_ROWS)).astype(np.int64)
            for first in range(0, len(picked), 64):
                digest.update(np.ascontiguousarray(self.features[picked[first : first + 64]]).data)
        return digest.hexdigest()
