"""Samples from the built-in image sets and from folders of class folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images import ImageSet, load_images
from rarefy.data.images.catalog import SETS, class_folder, folder_options
from rarefy.data.images.decoding import DecodedImage
from rarefy.data.images.folder_scan import FolderFiles, scan
from rarefy.data.images.folders import (
    FolderOptions,
    common_shape,
    decode_or_stop,
    fitted,
    ignored_files,
    relative_name,
    stack_images,
)
from rarefy.data.images.listing import counted
from rarefy.tools.image_data import split_options
from rarefy.tools.samples.arrays import pictures
from rarefy.tools.samples.samples import Samples

SPLITS = ("train", "test", "all")


def from_images(text: str | Path, split: str | None = None, **options: Any) -> Samples:
    """A built-in set by name, or a folder of class folders; pixels stay uint8.

    split: ``train``, ``test`` or ``all``; by default ``train``, and all of a folder that has no
    split of its own (``train`` of such a folder is what ``rarefy train`` would train on). options
    are for folders: ``size``, ``test_share``, ``channels``, ``skip_bad``; they may stand behind the
    text too (``photos?size=64``).
    """
    if split not in (None, *SPLITS):
        raise bad_value("split", split, f"must be one of {', '.join(SPLITS)}")
    name, behind = split_options(str(text))
    options = {**behind, **{key: value for key, value in options.items() if value is not None}}
    if name not in SETS:
        found = scan(class_folder(name))
        if split == "all" or (split is None and found.test is None):
            return _whole_folder(found, folder_options(options))
    data = load_images(name, **options)
    parts = {"train": (data.train,), "test": (data.test,), "all": (data.train, data.test)}
    return _samples(
        data.name,
        parts[split or "train"],
        source=data.source,
        split=split or "train",
        notes=data.notes,
        left_out=data.left_out,
    )


def _samples(name: str, parts: tuple[ImageSet, ...], **about: Any) -> Samples:
    whole = parts[0] if len(parts) == 1 else _together(parts)
    channels, height, width = whole.images.shape[1:]
    features = whole.images.flatten(1).numpy()
    shape = (channels, height, width)
    return Samples(
        name=name,
        features=features,
        labels=whole.labels.numpy(),
        classes=whole.classes,
        scale=1 / 255,
        files=whole.files,
        images=pictures(features, shape, channels_last=False),
        image=shape,
        ids_from=lambda: whole.ids,
        **about,
    )


def _together(parts: tuple[ImageSet, ...]) -> ImageSet:
    """One set of several; copies across them are counted together."""
    files: list[str] = []
    for part in parts:
        files += part.files or ()
    return ImageSet(
        torch.cat([part.images for part in parts]),
        torch.cat([part.labels for part in parts]),
        parts[0].classes,
        tuple(files) if all(part.files is not None for part in parts) else None,
    )


def _whole_folder(found: FolderFiles, options: FolderOptions) -> Samples:
    """Every image of a folder. Nothing is split, so that a class may have a single image."""
    folder = found.root
    pairs = [*found.train, *(found.test or ())]
    results, bad = decode_or_stop([path for path, _ in pairs], folder, options)
    good = [
        (relative_name(path, folder), label, result)
        for (path, label), result in zip(pairs, results, strict=True)
        if isinstance(result, DecodedImage)
    ]
    if len({label for _, label, _ in good}) < 2:
        raise UsageError(f"{folder}: readable images of at least 2 classes are needed")
    images = [image for _, _, image in good]
    channels, side = common_shape(images, options)
    notes = [*ignored_files(found), *fitted(images, side)]
    if bad:
        were = "was" if len(bad) == 1 else "were"
        notes.append(f"{counted(len(bad), 'file')} that cannot be read {were} left out")
    labels: Tensor = torch.tensor([label for _, label, _ in good], dtype=torch.int64)
    files = tuple(file for file, _, _ in good)
    return _samples(
        folder.resolve().name or "folder",
        (ImageSet(stack_images(images, channels, side), labels, found.classes, files),),
        source=str(folder),
        split="all",
        notes=tuple(notes),
        left_out=bad,
    )
