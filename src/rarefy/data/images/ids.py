"""Content-hash ids: a sample keeps its name whatever order, file or folder it comes from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

DIGEST_BYTES = 16
MARK = "-"
"""Between digest and occurrence number, in the ids of all but the first of exact copies."""


def content_ids(images: Tensor, labels: Tensor) -> tuple[str, ...]:
    """One id per sample: a hash of shape and pixels, then an occurrence number for exact copies.

    images: uint8 (n, channels, height, width); labels: (n,). Copies are counted in the order of
    their labels: which of two copies with different labels has which id then does not depend on
    the order of the set.
    """
    start = hashlib.blake2b(repr(tuple(images.shape[1:])).encode(), digest_size=DIGEST_BYTES)
    rows = images.cpu().contiguous().flatten(1).numpy()
    return number_copies(row_digests(start, rows), labels.tolist())


def row_digests(start: Any, rows: NDArray[Any]) -> list[str]:
    """A hash of each row's bytes (C order), begun as ``start`` is."""
    digests = []
    for row in rows:
        hasher = start.copy()
        hasher.update(row.data)
        digests.append(hasher.hexdigest())
    return digests


def number_copies(digests: list[str], labels: list[int]) -> tuple[str, ...]:
    if len(set(digests)) == len(digests):
        return tuple(digests)
    ids = list(digests)
    seen: dict[str, int] = {}
    for index in sorted(range(len(digests)), key=lambda index: labels[index]):
        digest = digests[index]
        count = seen[digest] = seen.get(digest, -1) + 1
        if count:
            ids[index] = f"{digest}{MARK}{count}"
    return tuple(ids)


def digest_of(identity: str) -> str:
    """The content hash in an id: equal for exact copies."""
    return identity.partition(MARK)[0]


def short_hash(lines: Iterable[str]) -> str:
    """Sixteen hex digits that stand for these lines, in this order."""
    hasher = hashlib.blake2b(digest_size=8)
    for line in lines:
        # names of files and classes may hold bytes that are no text
        hasher.update(line.encode("utf-8", "surrogateescape") + b"\n")
    return hasher.hexdigest()


def choose_by_content(
    keys: Sequence[str], labels: Sequence[int], share: float, purpose: str = "test"
) -> list[bool]:
    """Which samples go into a part of about ``share`` of each class, decided by content alone.

    Within a class samples are ordered by a hash of ``purpose`` and key (another purpose is another
    draw), and the first ones are taken. Equal keys stay together, so that no copy of a chosen
    sample is left outside. Each class with two different keys has some on both sides; one with a
    single key is not chosen from.
    """
    members: dict[int, dict[str, list[int]]] = {}
    for index, (key, label) in enumerate(zip(keys, labels, strict=True)):
        members.setdefault(label, {}).setdefault(key, []).append(index)
    chosen = [False] * len(keys)
    for groups in members.values():
        total = sum(map(len, groups.values()))
        wanted = max(round(share * total), 1)
        ordered = sorted(groups, key=lambda key: short_hash((purpose, key)))
        taken = 0
        for key in ordered[:-1]:
            if taken >= wanted:
                break
            taken += len(groups[key])
            for index in groups[key]:
                chosen[index] = True
    return chosen
