"""Ids from content for rows of numbers, as images have them, and which rows are copies."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarefy.data.images.ids import DIGEST_BYTES, MARK, digest_of, number_copies, row_digests

CHUNK_BYTES = 8 * 2**20
"""So much of the features is looked at together; no more of a memory map is in memory a thread."""
NUMBER = "<f8"
"""What features that are no pixels are hashed as. For float32 this takes 1.6 times as long as
hashing its bytes: about 7 s for a million rows of 512."""
Shape = tuple[int, int, int]


def row_ids(
    features: NDArray[Any],
    labels: NDArray[np.int64],
    image: Shape | None = None,
    channels_last: bool = False,
) -> tuple[str, ...]:
    """One id per row: a hash of its numbers and how many there are, then an occurrence number for
    exact copies (see ``rarefy.data.images.ids``).

    Numbers are hashed as float64: a row has one id, whether a file keeps it as whole numbers or as
    float32, and in either byte order. (Whole numbers beyond 2^53 are rounded, as scores do, too.)

    image: (channels, height, width) of rows that are uint8 images. Their ids are those that the
    images have in an ``ImageSet``, in whichever order the channels lie here.
    """
    if image is not None and features.dtype == np.uint8:
        about, kind = repr(image), features.dtype
        turned = image if channels_last and image[0] > 1 else None
    else:
        about, kind, turned = repr((NUMBER, features.shape[1])), np.dtype(NUMBER), None
    start = hashlib.blake2b(about.encode(), digest_size=DIGEST_BYTES)
    digests: list[str] = []
    chunks = _chunks(features, kind.itemsize)
    # hashlib leaves Python's lock for rows of 2 kB and more
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for some in pool.map(lambda rows: _digests(start, rows, kind, turned), chunks):
            digests += some
    return number_copies(digests, labels.tolist())


def _chunks(features: NDArray[Any], itemsize: int) -> Iterator[NDArray[Any]]:
    step = max(1, CHUNK_BYTES // max(1, features.shape[1] * itemsize))
    for first in range(0, len(features), step):
        yield features[first : first + step]


def _digests(
    start: Any, rows: NDArray[Any], kind: np.dtype[Any], turned: Shape | None
) -> list[str]:
    # a plain array: one object of class memmap a row takes longer than its hash
    rows = np.asarray(rows).astype(kind, copy=False)
    if turned is not None:
        channels, height, width = turned
        rows = (
            rows.reshape(-1, height, width, channels).transpose(0, 3, 1, 2).reshape(len(rows), -1)
        )
    return row_digests(start, np.ascontiguousarray(rows))


class Copies(NamedTuple):
    """What identical content says of each sample."""

    copies: NDArray[np.int64]
    """How many other samples have the same content."""
    conflict: NDArray[np.bool_]
    """Whether one of them has another label."""


def copies_of(ids: Sequence[str], labels: NDArray[np.int64]) -> Copies:
    """Which samples are copies of others, by the content hash in their ids."""
    copies = np.zeros(len(ids), dtype=np.int64)
    conflict = np.zeros(len(ids), dtype=np.bool_)
    if len(set(ids)) == len(ids) and not any(MARK in one for one in ids):
        return Copies(copies, conflict)
    digests = [digest_of(one) for one in ids]
    counts = Counter(digests)
    places: dict[str, list[int]] = {}
    for place, digest in enumerate(digests):
        if counts[digest] > 1:
            places.setdefault(digest, []).append(place)
    for group in places.values():
        copies[group] = len(group) - 1
        conflict[group] = len(np.unique(labels[group])) > 1
    return Copies(copies, conflict)
