"""What a data set holds, counted: classes, exact copies, mean and std."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import torch

from rarefy.data.hierarchy.levels import label_levels, level_of, parent_level
from rarefy.data.images.ids import digest_of
from rarefy.data.images.image_set import ImageData, ImageSet, Level


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
class LevelCounts:
    """Labels of one level, counted in the training images."""

    classes: int
    fewest: int
    fewest_class: str
    most: int
    most_class: str
    parent: str
    """The coarser level that it lies in, or else comes next to; empty for the coarsest."""
    agreement: float
    """With the parent: 1 where each label lies in one of its labels."""


@dataclass(frozen=True)
class Examination:
    """A data set in numbers."""

    name: str
    source: str
    shape: tuple[int, int, int]
    classes: int
    levels: dict[str, int]
    hierarchy: dict[str, LevelCounts]
    """The set's own labels and all levels, fewest classes first."""
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
        hierarchy={name: _level(data.train, name) for name in label_levels(data.train)},
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
    copies = sum(count - 1 for count in Counter(digests).values())
    return SplitCounts(len(images), *_extremes((images.labels, images.classes)), copies)


def _level(images: ImageSet, name: str) -> LevelCounts:
    level = level_of(images, name)
    parent, agreement = parent_level(images, name) or ("", 1.0)
    return LevelCounts(len(level[1]), *_extremes(level), parent, agreement)


def _extremes(level: Level) -> tuple[int, str, int, str]:
    """How many images the smallest class has and its name, and the same of the largest."""
    labels, names = level
    counts = torch.bincount(labels.cpu(), minlength=len(names))
    fewest, most = int(counts.argmin()), int(counts.argmax())
    return int(counts[fewest]), names[fewest], int(counts[most]), names[most]
