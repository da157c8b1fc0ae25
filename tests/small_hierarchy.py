"""Tiny labelled image sets in memory, for tests of hierarchies."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rarefy.data.images.image_set import ImageData, ImageSet

PETS = ("husky", "poodle", "siamese", "sedan")


def small_set(
    classes: Sequence[str] = PETS, each: int = 2, files: Sequence[str] | None = None, seed: int = 0
) -> ImageSet:
    """``each`` images of every class, class by class."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(len(classes)).repeat_interleave(each)
    images = torch.randint(0, 256, (len(labels), 1, 2, 2), generator=random, dtype=torch.uint8)
    return ImageSet(images, labels, tuple(classes), None if files is None else tuple(files))


def small_data(classes: Sequence[str] = PETS, each: int = 2) -> ImageData:
    return ImageData(
        "small", small_set(classes, each), small_set(classes, 1, seed=1), "memory", ("a note",)
    )


def data_of_files(train: Sequence[str], test: Sequence[str]) -> ImageData:
    """Files as a folder has them, ``CLASS/...`` or ``train/CLASS/...``."""
    paths = [file.split("/") for file in (*train, *test)]
    skipped = int({path[0] for path in paths} == {"train", "test"})
    classes = tuple(sorted({path[skipped] for path in paths}))
    splits = []
    for seed, files in enumerate((train, test)):
        labels = torch.tensor([classes.index(file.split("/")[skipped]) for file in files])
        images = small_set("x", len(files), seed=seed).images
        splits.append(ImageSet(images, labels, classes, tuple(files)))
    return ImageData("folder", splits[0], splits[1], "folder")


def names_at(data: ImageData, level: str) -> list[str]:
    """The label of each training image at a level."""
    labels, names = data.train.levels[level]
    return [names[label] for label in labels.tolist()]
