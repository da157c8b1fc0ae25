"""The labels of an image set at all levels, and how two levels lie in each other."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.data.images.ids import short_hash
from rarefy.data.images.image_set import ImageData, ImageSet, Level

CLASS = "class"
"""The level of a set's own labels."""


def label_levels(images: ImageSet) -> dict[str, Level]:
    """The set's own labels and all others by name, fewest classes first."""
    levels = {CLASS: (images.labels, images.classes), **images.levels}
    return dict(sorted(levels.items(), key=lambda item: len(item[1][1])))


def level_of(images: ImageSet, name: str) -> Level:
    """One level; an unknown name is an error with the nearest."""
    levels = label_levels(images)
    if name not in levels:
        raise unknown("level", name, levels)
    return levels[name]


def agreement(fine: Tensor, coarse: Tensor) -> float:
    """Share of images whose coarse label is the most frequent one among images with their fine
    label: 1 where each fine label lies in one coarse label."""
    pairs, counts = _pairs(fine, coarse)
    most = torch.zeros(int(fine.max()) + 1, dtype=torch.int64, device=fine.device)
    most.scatter_reduce_(0, pairs[0], counts, "amax")
    return int(most.sum()) / len(fine)


def parents(fine: Level, coarse: Level) -> list[int]:
    """The coarse label of each fine one, -1 for one without images; an error names a fine label
    that lies in two."""
    pairs, _ = _pairs(fine[0], coarse[0])
    found = [-1] * len(fine[1])
    for child, parent in pairs.T.tolist():
        if found[child] >= 0:
            both = " and ".join(repr(coarse[1][one]) for one in (found[child], parent))
            raise UsageError(f"label {fine[1][child]!r} lies in two coarser ones, {both}")
        found[child] = parent
    return found


def parent_level(images: ImageSet, name: str) -> tuple[str, float] | None:
    """The finest of the coarser levels that a level lies in, and agreement 1; where it lies in
    none, the finest coarser one with their agreement. None for the coarsest."""
    labels, names = level_of(images, name)
    coarser = {
        other: agreement(labels, level[0])
        for other, level in reversed(label_levels(images).items())
        if len(level[1]) < len(names)
    }
    return next((pair for pair in coarser.items() if pair[1] == 1), None) or next(
        iter(coarser.items()), None
    )


def smallest(labels: Tensor, classes: int) -> int:
    """How many images the smallest class has; 0 where one of them has none."""
    return int(torch.bincount(labels, minlength=classes).min())


def levels_identity(data: ImageData) -> str:
    """A short hash of all levels but the set's own labels (which are in its fingerprint): names
    and the label of each image, whatever the order of images and levels."""
    lines = []
    for split in (data.train, data.test):
        order = sorted(range(len(split)), key=split.ids.__getitem__)
        for name, (labels, names) in sorted(split.levels.items()):
            lines += [repr(name), repr(names), *(names[one] for one in labels[order].tolist())]
        lines.append("")
    return short_hash(lines)


def _pairs(fine: Tensor, coarse: Tensor) -> tuple[Tensor, Tensor]:
    """The different (fine, coarse) pairs, (2, k), and how often each occurs: k is at most the
    number of images, a table of all pairs could be large."""
    if fine.shape != coarse.shape or not len(fine):
        found = f"{tuple(fine.shape)} and {tuple(coarse.shape)}"
        raise bad_value("fine and coarse", found, "must be labels of the same images")
    width = int(coarse.max()) + 1
    codes, counts = (fine * width + coarse).unique(return_counts=True)
    return torch.stack([codes // width, codes % width]), counts
