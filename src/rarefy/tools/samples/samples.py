"""Labelled samples as the scores read them: rows of numbers, classes, names and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images.ids import short_hash
from rarefy.data.images.listing import counted
from rarefy.tools.samples.messages import rows_text
from rarefy.tools.samples.row_ids import CHUNK_BYTES, Shape, row_ids

Rows = slice | Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]
Picture = Callable[[int], NDArray[np.uint8]]
"""A sample's index to its pixels, (height, width) or (height, width, channels)."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Samples:
    """n labelled samples of d numbers each. Make one with ``from_arrays``, ``from_images``,
    ``from_npy``, ``from_table``, ``from_hugging_face``, ``from_pairs`` or ``open_samples``."""

    name: str
    features: NDArray[Any]
    """(n, d), real numbers; may be a memory map, of which nothing is copied"""
    labels: NDArray[np.int64]
    """(n,), positions in ``classes``, of which some may be empty"""
    classes: tuple[str, ...]
    scale: float = 1.0
    """What features are multiplied with when they are used: 1/255 for pixels."""
    files: tuple[str, ...] | None = None
    images: Picture | None = None
    image: Shape | None = None
    """(channels, height, width) where a row of features is an image's pixels"""
    channels_last: bool = False
    """Whether such a row is (height, width, channels) instead."""
    feature_names: tuple[str, ...] | None = None
    source: str = ""
    """Where it was read from, for people."""
    split: str = ""
    """Which part of its source: ``train``, ``test``, ``all``, or empty where it has no parts."""
    notes: tuple[str, ...] = ()
    """What a reader of the scores should know about how this was read."""
    left_out: tuple[str, ...] = ()
    """What could not be read, each with the reason (only where that was asked for)."""
    ids_from: Callable[[], tuple[str, ...]] | None = None
    """Where ids come from, if not from these features: the images of which they are embeddings."""
    as_read: NDArray[Any] | None = None
    """Features in their own units, (n, d), where ``features`` are standardised."""

    def __post_init__(self) -> None:
        shape, dtype = self.features.shape, self.features.dtype
        if len(shape) != 2 or dtype.kind not in "iuf" or not all(shape):
            raise bad_value(
                "features", f"{dtype} {shape}", "must be real numbers (n, d), not empty"
            )
        if self.labels.shape != (len(self),) or self.labels.dtype != np.int64:
            found = f"{self.labels.dtype} {self.labels.shape}"
            raise bad_value("labels", found, f"must be int64 ({len(self)},), one per sample")
        if not (0 <= self.labels.min() and self.labels.max() < len(self.classes)):
            extremes = [int(self.labels.min()), int(self.labels.max())]
            raise bad_value("labels", extremes, f"must be from 0 to {len(self.classes) - 1}")
        if self.files is not None and len(self.files) != len(self):
            found = counted(len(self.files), "name")
            raise bad_value("names", found, f"must be {len(self)}, one per sample")
        if self.feature_names is not None and len(self.feature_names) != shape[1]:
            found = counted(len(self.feature_names), "name")
            raise bad_value("feature_names", found, f"must be {shape[1]}, one per feature")

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        kind = f"{self.features.shape[1]} features, {len(self.classes)} classes"
        return f"Samples({self.name!r}, {len(self)} samples of {kind})"

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Content hashes, made when they are first asked for."""
        if self.ids_from is not None:
            return self.ids_from()
        return row_ids(self.features, self.labels, self.image, self.channels_last)

    @cached_property
    def fingerprint(self) -> str:
        """Stands for content and labels; the same samples in another order have the same one."""
        pairs = zip(self.ids, self.labels.tolist(), strict=True)
        return short_hash(
            [repr(self.classes), *sorted(f"{one} {self.classes[label]}" for one, label in pairs)]
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many samples each class has."""
        return np.bincount(self.labels, minlength=len(self.classes))

    def take(self, rows: Rows) -> Samples:
        """These samples (positions, a mask or a slice), in this order, with the ids they have here.

        A slice of a memory map stays one; rows chosen one by one are copied into memory.
        """
        places = self._places(rows)
        pictures, files = self.images, self.files
        return replace(
            self,
            features=self.features[rows if isinstance(rows, slice) else places],
            labels=self.labels[places],
            as_read=None if self.as_read is None else self.as_read[places],
            files=None if files is None else tuple(files[place] for place in places),
            images=None if pictures is None else lambda index: pictures(int(places[index])),
            # hashed anew, the second of two copies would be its own first
            ids_from=lambda: tuple(self.ids[place] for place in places),
        )

    def _places(self, rows: Rows) -> NDArray[np.int64]:
        if isinstance(rows, slice):
            places = np.arange(len(self))[rows]
        else:
            places = np.asarray(rows)
            if places.dtype == np.bool_:
                if places.shape != (len(self),):
                    raise bad_value("rows", places.shape, f"a mask must be ({len(self)},)")
                places = np.flatnonzero(places)
        if places.ndim != 1 or places.dtype.kind not in "iu" or not places.size:
            found = f"{places.dtype} {places.shape}"
            raise bad_value("rows", found, "must be whole numbers (k,), at least one")
        if not (0 <= places.min() and places.max() < len(self)):
            extremes = [int(places.min()), int(places.max())]
            raise bad_value("rows", extremes, f"must be from 0 to {len(self) - 1}")
        return places.astype(np.int64, copy=False)

    def check_finite(self) -> None:
        """Complain about rows with NaN or infinite features; reads all of them once."""
        if self.features.dtype.kind != "f":
            return
        bad: list[int] = []
        step = max(1, CHUNK_BYTES // (self.features.shape[1] * self.features.itemsize))
        for first in range(0, len(self), step):
            chunk = np.asarray(self.features[first : first + step])
            with np.errstate(over="ignore", invalid="ignore"):
                # whatever is not finite makes the sum so: several times faster than asking each
                total = chunk.sum(dtype=np.float64)
            if not np.isfinite(total):
                bad += (first + np.flatnonzero(~np.isfinite(chunk).all(axis=1))).tolist()
        if bad:
            raise UsageError(
                f"{self.name}: features that are NaN or infinite in {rows_text(bad)}, of "
                f"{counted(len(self), 'sample')}"
            )
