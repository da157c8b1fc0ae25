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

from rarefy.data.images.ids import DIGEST_BYTES, MARK, digest_of, numbered

CHUNK_BYTES = 8 * 2**20
"""So much of the features is looked at together; nothing of a memory map is copied."""
Shape = tuple[int, int, int]


def row_ids(
    features: NDArray[Any],
    labels: NDArray[np.int64],
    image: Shape | None = None,
    channels_last: bool = False,
) -> tuple[str, ...]:
    """One id a row: a hash of its bytes, their type and how many there are, then an occurrence
    number for exact copies (see ``rarefy.data.images.ids``).

    image: (channels, height, width) of rows that are uint8 images. Their ids are those that the
    images have in an ``ImageSet``, in whichever order the channels lie here.
    """
    if image is not None and features.dtype == np.uint8:
        about = repr(image)
        turned = image if channels_last and image[0] > 1 else None
    else:
        # the byte order is part of the type: files of two machines may differ in it
        about, turned = repr((features.dtype.str, features.shape[1])), None
    start = hashlib.blake2b(about.encode(), digest_size=DIGEST_BYTES)
    digests: list[str] = []
    # hashlib leaves Python's lock for rows of 2 kB and more
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for some in pool.map(lambda rows: _digests(start, rows, turned), _chunks(features)):
            digests += some
    return numbered(digests, labels.tolist())


def _chunks(features: NDArray[Any]) -> Iterator[NDArray[Any]]:
    step = max(1, CHUNK_BYTES // max(1, features.shape[1] * features.itemsize))
    for first in range(0, len(features), step):
        yield features[first : first + step]


def _digests(start: Any, rows: NDArray[Any], turned: Shape | None) -> list[str]:
    # a plain array: one object of class memmap a row takes longer than its hash
    rows = np.asarray(rows)
    if turned is not None:
        channels, height, width = turned
        rows = (
            rows.reshape(-1, height, width, channels).transpose(0, 3, 1, 2).reshape(len(rows), -1)
        )
    rows = np.ascontiguousarray(rows)
    digests = []
    for row in rows:
        hasher = start.copy()
        hasher.update(row.data)
        digests.append(hasher.hexdigest())
    return digests


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
