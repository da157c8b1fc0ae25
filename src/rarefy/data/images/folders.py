"""Any folder of class folders as a data set: every file is checked, all bad ones told at once."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageFile
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.progress import Progress
from rarefy.data.images.decoding import FALLBACK, BadImage, DecodedImage, decode, fit_to_square
from rarefy.data.images.folder_scan import FolderFiles, scan
from rarefy.data.images.ids import choose_by_content
from rarefy.data.images.image_set import ImageData, ImageSet
from rarefy.data.images.listing import counted, listed

MANY = 2000
"""From so many files on there is a progress bar."""
LARGEST = 1024
"""Largest side that can be asked for."""


@dataclass(frozen=True)
class FolderOptions:
    """How a folder of images becomes a data set."""

    size: int | None = None
    """Side of the images; by default their own if all are equal squares up to 64, else 32."""
    test_share: float = 0.2
    """Of each class, chosen by content, where the folder has no split of its own."""
    channels: int | None = None
    """1 (grey) or 3; by default 1 if all images are grey."""
    skip_bad: bool = False
    """Leave out files that cannot be read, instead of stopping."""

    def __post_init__(self) -> None:
        if self.size is not None and not (type(self.size) is int and 1 <= self.size <= LARGEST):
            raise bad_value("size", self.size, f"must be a whole number from 1 to {LARGEST}")
        if not (math.isfinite(self.test_share) and 0 < self.test_share < 1):
            raise bad_value("test_share", self.test_share, "must be between 0 and 1")
        if self.channels not in (None, 1, 3):
            raise bad_value("channels", self.channels, "must be 1 (grey) or 3 (colour)")


def load_folder(folder: Path, options: FolderOptions | None = None) -> ImageData:
    """``folder/train/CLASS/*`` and ``folder/test/CLASS/*``, or ``folder/CLASS/*`` split by content.

    The content of a file decides where it goes, not its name: the same files under other names,
    or at another size, are split alike.
    """
    data = read_folder(folder, options)
    warn_of(data.left_out, folder)
    return data


def warn_of(left_out: Sequence[str], folder: Path) -> None:
    """One line on standard error about files that are left out, if there are any."""
    if left_out:
        they = "is left out, it" if len(left_out) == 1 else "are left out, they"
        print(
            f"warning: {counted(len(left_out), 'file')} of {folder} {they} cannot be read: "
            f"{listed(left_out)}",
            file=sys.stderr,
        )


def read_folder(folder: Path, options: FolderOptions | None = None) -> ImageData:
    """``load_folder`` without its warning line; what was left out stands in the result."""
    options = options if options is not None else FolderOptions()
    found = scan(folder)
    pairs = [*found.train, *(found.test or ())]
    results, bad = decode_or_stop([path for path, _ in pairs], folder, options)
    samples = [
        _Sample(relative_name(path, folder), label, position >= len(found.train), result)
        for position, ((path, label), result) in enumerate(zip(pairs, results, strict=True))
        if isinstance(result, DecodedImage)
    ]
    return _assembled(found, samples, bad, options)


def decode_or_stop(
    paths: Sequence[Path], folder: Path, options: FolderOptions
) -> tuple[list[DecodedImage | BadImage], tuple[str, ...]]:
    """Every file, and the bad ones with their reasons; an error unless those are to be skipped."""
    results = decode_all(paths, options.size, folder)
    bad = tuple(
        f"{relative_name(path, folder)} ({result})"
        for path, result in zip(paths, results, strict=True)
        if isinstance(result, BadImage)
    )
    if bad and not options.skip_bad:
        raise UsageError(
            f"{len(bad)} of {counted(len(paths), 'file')} of {folder} cannot be read: "
            f"{listed(bad)}; remove them, or leave them out with --skip-bad (skip_bad=True)"
        )
    return results, bad


@dataclass(frozen=True)
class _Sample:
    file: str
    label: int
    in_test: bool
    image: DecodedImage


def _assembled(
    found: FolderFiles, samples: list[_Sample], bad: tuple[str, ...], options: FolderOptions
) -> ImageData:
    notes = ignored_files(found)
    if found.test is None:
        in_test = _split(found, samples, bad, options.test_share)
        notes.append(f"split by content, {options.test_share:g} of each class for testing")
    else:
        in_test = [sample.in_test for sample in samples]
        if found.test_name is not None and found.test_name.lower() != "test":
            notes.append(f"{found.test_name}/ is used for testing")
        _need_all(found, samples, in_test, bad)
    images = [sample.image for sample in samples]
    channels, side = common_shape(images, options)
    notes += fitted(images, side)
    splits = []
    for wanted in (False, True):
        chosen = [one for one, here in zip(samples, in_test, strict=True) if here is wanted]
        splits.append(
            ImageSet(
                stack_images([sample.image for sample in chosen], channels, side),
                torch.tensor([sample.label for sample in chosen], dtype=torch.int64),
                found.classes,
                tuple(sample.file for sample in chosen),
            )
        )
    name = found.root.resolve().name or "folder"
    return ImageData(name, splits[0], splits[1], str(found.root), tuple(notes), bad)


def ignored_files(found: FolderFiles) -> list[str]:
    """A note about files that are no images, if there are any."""
    if not found.others:
        return []
    what = "file that is no image" if found.others == 1 else "files that are no images"
    was = "was" if found.others == 1 else "were"
    return [f"{found.others} {what} (by extension) {was} ignored"]


def decode_all(
    paths: Sequence[Path], size: int | None, folder: Path
) -> list[DecodedImage | BadImage]:
    """Every file, in order; threads, because decoders work outside Python's lock."""
    many = len(paths) >= MANY
    bar = Progress(f"images of {folder.name}", len(paths)) if many else nullcontext()
    workers = min(8, os.cpu_count() or 1)
    results: list[DecodedImage | BadImage] = []
    with _strict_and_silent(), bar as progress, ThreadPoolExecutor(workers) as pool:
        try:
            for result in pool.map(lambda path: _tried(path, size), paths):
                results.append(result)
                if progress is not None:
                    progress.advance(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


@contextmanager
def _strict_and_silent() -> Iterator[None]:
    """Decoders that refuse truncated files, even where a program told them not to, and that do not
    grumble (about odd notes in a file). Both are settings of the whole process, not of a thread."""
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


def _tried(path: Path, size: int | None) -> DecodedImage | BadImage:
    try:
        return decode(path, size)
    except BadImage as error:
        return error.with_traceback(None)


def _split(
    found: FolderFiles, samples: list[_Sample], bad: tuple[str, ...], share: float
) -> list[bool]:
    keys = [sample.image.key for sample in samples]
    labels = [sample.label for sample in samples]
    in_test = choose_by_content(keys, labels, share)
    on_both_sides = {label for label, here in zip(labels, in_test, strict=True) if here}
    few = [repr(name) for label, name in enumerate(found.classes) if label not in on_both_sides]
    if few:
        raise UsageError(
            f"{found.root}: at least 2 different images of each class are needed to split it, "
            f"there are fewer of {listed(few)}{_because(bad)}"
        )
    return in_test


def _need_all(
    found: FolderFiles, samples: list[_Sample], in_test: list[bool], bad: tuple[str, ...]
) -> None:
    for wanted, split in ((False, "train"), (True, found.test_name)):
        seen = {one.label for one, here in zip(samples, in_test, strict=True) if here is wanted}
        gone = [repr(name) for label, name in enumerate(found.classes) if label not in seen]
        if gone:
            raise UsageError(
                f"{found.root}: no readable image in {split}/ of {listed(gone)}{_because(bad)}"
            )


def _because(bad: tuple[str, ...]) -> str:
    return f"; {counted(len(bad), 'file')} cannot be read: {listed(bad)}" if bad else ""


def common_shape(images: Sequence[DecodedImage], options: FolderOptions) -> tuple[int, int]:
    """Channels and side of a set: what was asked for, else what its images have in common."""
    sides = {image.side for image in images}
    common = (sides.pop() or FALLBACK) if len(sides) == 1 else FALLBACK
    grey = all(image.pixels.ndim == 2 for image in images)
    channels = options.channels if options.channels is not None else (1 if grey else 3)
    return channels, options.size if options.size is not None else common


def fitted(images: Sequence[DecodedImage], side: int) -> list[str]:
    """A note about photographs, of which a network sees less than a person."""
    count = sum(image.side != side for image in images)
    seen = f"seen as the middle square at {side} x {side} pixels (--size changes that)"
    return [f"{count:,} of {counted(len(images), 'image')} {seen}"] if count else []


def stack_images(images: Sequence[DecodedImage], channels: int, side: int) -> Tensor:
    """uint8 (n, channels, side, side)"""
    pixels = np.empty((len(images), channels, side, side), dtype=np.uint8)
    for place, image in enumerate(images):
        pixels[place] = planes(image.pixels, side, channels)
    return torch.from_numpy(pixels)


def planes(pixels: NDArray[np.uint8], side: int, channels: int) -> NDArray[np.uint8]:
    """(channels or 1, side, side)"""
    if pixels.shape[0] != side:
        pixels = np.asarray(fit_to_square(Image.fromarray(pixels), side))
    if pixels.ndim == 2:
        return pixels[None]
    if channels == 1:
        return np.asarray(Image.fromarray(pixels).convert("L"))[None]
    return pixels.transpose(2, 0, 1)


def relative_name(path: Path, folder: Path) -> str:
    """A path as seen from the folder that was asked for."""
    return path.relative_to(folder).as_posix()
