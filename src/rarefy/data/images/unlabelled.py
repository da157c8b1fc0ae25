"""Any folder of images as one set without labels, to learn a representation from."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from rarefy.core.errors import UsageError
from rarefy.data.images.decoding import DecodedImage
from rarefy.data.images.folder_scan import both_splits, images_below
from rarefy.data.images.folders import (
    FolderOptions,
    common_shape,
    decode_or_stop,
    relative_name,
    stack_images,
    warn_of,
)
from rarefy.data.images.image_set import ImageSet
from rarefy.data.images.listing import counted, listed

UNLABELLED = ("images",)
"""All are of this one class."""


def load_unlabelled(folder: Path | str, options: FolderOptions | None = None) -> ImageSet:
    """All images below the folder, at any depth; folders are not taken for classes.

    Sizes and modes are made the same as for a folder of class folders; ``test_share`` has no
    meaning, as nothing is split off. Files are in the order of their paths.
    """
    folder = Path(folder)
    options = options if options is not None else FolderOptions()
    paths, others = images_below(folder)
    if not paths:
        beside = f" ({counted(others, 'other file')})" if others else ""
        raise UsageError(f"{folder}: no images in it{beside}")
    results, bad = decode_or_stop(paths, folder, options)
    good = [
        (relative_name(path, folder), result)
        for path, result in zip(paths, results, strict=True)
        if isinstance(result, DecodedImage)
    ]
    if not good:
        raise UsageError(f"{folder}: no image in it can be read: {listed(bad)}")
    warn_of(bad, folder)
    _warn_of_test_images(folder)
    images = [image for _, image in good]
    return ImageSet(
        stack_images(images, *common_shape(images, options)),
        torch.zeros(len(good), dtype=torch.int64),
        UNLABELLED,
        tuple(file for file, _ in good),
    )


def _warn_of_test_images(folder: Path) -> None:
    """What is learnt from test images, even without labels, must not be tested on them."""
    both = both_splits(folder)
    if both is not None:
        train, test = both
        print(
            f"warning: the images of {folder} include those of {test.name}/; "
            f"to keep these for testing, give {train}",
            file=sys.stderr,
        )
