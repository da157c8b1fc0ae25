"""Image sets as trainings use them: on their device, some of them, the test images in halves."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rarefy.core.errors import bad_value, unknown
from rarefy.data.images import ImageData, ImageSet, load_images
from rarefy.data.images.folders import FolderOptions
from rarefy.data.images.ids import choose_by_content, digest_of
from rarefy.data.images.unlabelled import load_unlabelled


def with_options(
    name: str,
    size: int | None,
    test_share: float | None,
    skip_bad: bool,
    unlabelled: bool = False,
) -> str:
    """A folder and how it is read, as one text: ``photos?size=64&skip_bad=1``."""
    chosen = {
        "size": size,
        "test_share": test_share,
        "skip_bad": 1 if skip_bad else None,
        "unlabelled": 1 if unlabelled else None,
    }
    words = [f"{option}={value:g}" for option, value in chosen.items() if value is not None]
    return f"{name}?{'&'.join(words)}" if words else name


def split_options(text: str) -> tuple[str, dict[str, Any]]:
    """The other way round. A folder may have a question mark in its name."""
    name, mark, words = text.rpartition("?")
    if not mark or os.path.isdir(text):
        return text, {}
    kinds: dict[str, Callable[[str], Any]] = {
        "size": int,
        "test_share": float,
        "skip_bad": lambda word: bool(int(word)),
        "unlabelled": lambda word: bool(int(word)),
    }
    found = {}
    for word in words.split("&"):
        option, _, value = word.partition("=")
        if option not in kinds:
            raise unknown("option of a folder", option, kinds)
        try:
            found[option] = kinds[option](value)
        except ValueError:
            raise bad_value(option, value, "must be a number") from None
    return name, found


@lru_cache(maxsize=2)
def _loaded(text: str, folder: str | None, device: torch.device) -> ImageData:
    name, options = split_options(text)
    if options.pop("unlabelled", False):
        return _without_labels(name, options).to(device)
    return load_images(name, **options).to(device)


def _without_labels(name: str, options: dict[str, Any]) -> ImageData:
    """All images of a folder; nothing is tested on them."""
    options.pop("test_share", None)
    images = load_unlabelled(name, FolderOptions(**options))
    return ImageData(Path(name).resolve().name or "folder", images, images, name)


def on_device(name: str, device: torch.device) -> ImageData:
    """The set with its images on the device; the cells of a study share it. ``name`` may have
    options of a folder behind it (``with_options``)."""
    return _loaded(name, os.environ.get("RAREFY_DATA"), device)


@lru_cache(maxsize=2)
def _halves(
    name: str, folder: str | None, samples: int, device: torch.device
) -> tuple[ImageSet, ImageSet]:
    test = some_of(_loaded(name, folder, device).test, samples)
    # by content without the number of a copy: copies of an image stay in one half
    contents = [digest_of(one) for one in test.ids]
    first = choose_by_content(contents, test.labels.tolist(), 0.5, "half")
    chosen = torch.tensor(first)
    return test.take(chosen), test.take(~chosen)


def halves_of_test(name: str, samples: int, device: torch.device) -> tuple[ImageSet, ImageSet]:
    """The test images of a set (``samples`` of them, 0: all) in two halves, every class that has
    two of them in both."""
    return _halves(name, os.environ.get("RAREFY_DATA"), samples, device)


def data_identity(name: str) -> str:
    """Which set, and a hash of its content whatever the order of its images."""
    data = on_device(name, torch.device("cpu"))
    return f"{data.name} ({data.fingerprint})"


def noise_in_pixels(name: str) -> float:
    """The std of a set's pixels (scaled to [0, 1]), the mean over channels: what noise of std 1
    becomes when it is added after pixels were brought to std 1."""
    std = on_device(name, torch.device("cpu")).std
    return sum(std) / len(std)


def some_of(images: ImageSet, samples: int) -> ImageSet:
    """``samples`` images (0: all), the same share of every class, chosen by content: the same ones
    wherever the files lie in another order."""
    if samples == 0 or samples >= len(images):
        return images
    return images.take(places_of(images, samples))


def places_of(images: ImageSet, samples: int) -> Tensor:
    """Which those are, in order."""
    if samples >= len(images):
        return torch.arange(len(images))
    ids, labels = images.ids, images.labels.tolist()
    of_class: dict[int, list[int]] = {}
    for place in sorted(range(len(images)), key=lambda place: ids[place]):
        of_class.setdefault(labels[place], []).append(place)
    share = samples / len(images)
    chosen = [
        place
        for places in of_class.values()
        for place in places[: max(1, round(share * len(places)))]
    ]
    return torch.tensor(sorted(chosen))
