"""What a data set holds, counted: classes, exact copies, mean and std."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import torch

from rarefy.data.images.ids import digest_of
from rarefy.data.images.image_set import ImageData, ImageSet


@dataclass(frozen=True)
class SplitCounts:
    """One split: how many images, and how many of the rarest and the commonest class."""

    images: int
    fewest: int
    fewest_class: str
    most: int
    most_class: str
    copies: int
    """Images that repeat an earlier one of this split, pixel for pixel."""


@dataclass(frozen=True)
class Examination:
    """A data set in numbers."""

    name: str
    source: str
    shape: tuple[int, int, int]
    classes: int
    levels: dict[str, int]
    train: SplitCounts
    test: SplitCounts
    shared: int
    """Test images that are also in train, pixel for pixel."""
    contradictions: int
    """Different images, counted once each, that stand under more than one class."""
    mean: tuple[float, ...]
    std: tuple[float, ...]
    fingerprint: str
    notes: tuple[str, ...]
    bad_files: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def examine(data: ImageData) -> Examination:
    """Count everything once."""
    train, test = _digests(data.train), _digests(data.test)
    in_train = set(train)
    labels: dict[str, set[int]] = {}
    for split, digests in ((data.train, train), (data.test, test)):
        for digest, label in zip(digests, split.labels.tolist(), strict=True):
            labels.setdefault(digest, set()).add(label)
    return Examination(
        name=data.name,
        source=data.source,
        shape=data.shape,
        classes=len(data.classes),
        levels={name: len(names) for name, (_, names) in data.train.levels.items()},
        train=_counted(data.train, train),
        test=_counted(data.test, test),
        shared=sum(digest in in_train for digest in test),
        contradictions=sum(len(some) > 1 for some in labels.values()),
        mean=data.mean,
        std=data.std,
        fingerprint=data.fingerprint,
        notes=data.notes,
        bad_files=data.left_out,
    )


def _digests(images: ImageSet) -> list[str]:
    return [digest_of(identity) for identity in images.ids]


def _counted(images: ImageSet, digests: list[str]) -> SplitCounts:
    counts = torch.bincount(images.labels.cpu(), minlength=len(images.classes))
    fewest, most = int(counts.argmin()), int(counts.argmax())
    return SplitCounts(
        images=len(images),
        fewest=int(counts[fewest]),
        fewest_class=images.classes[fewest],
        most=int(counts[most]),
        most_class=images.classes[most],
        copies=sum(count - 1 for count in Counter(digests).values()),
    )
