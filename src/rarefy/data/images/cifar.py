"""CIFAR-10 and CIFAR-100: the official Python pickles, in their folder or still in the archive."""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.errors import UsageError
from rarefy.data.images.image_set import ImageData, ImageSet, Level
from rarefy.data.images.unpack_limit import LimitedGzip
from rarefy.data.restricted_pickle import as_texts, load_entries

SHAPE = (3, 32, 32)
Entries = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """How one of the two sets is laid out."""

    name: str
    folder: str
    archive: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    meta: str
    labels: str
    classes: str
    """Key of the class names in ``meta``."""
    coarse: tuple[str, str] | None = None
    """Keys of the superclasses' labels, and of their names in ``meta``."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.train, *self.test, self.meta)


CIFAR10 = Layout(
    name="cifar10",
    folder="cifar-10-batches-py",
    archive="cifar-10-python.tar.gz",
    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test=("test_batch",),
    meta="batches.meta",
    labels="labels",
    classes="label_names",
)
CIFAR100 = Layout(
    name="cifar100",
    folder="cifar-100-python",
    archive="cifar-100-python.tar.gz",
    train=("train",),
    test=("test",),
    meta="meta",
    labels="fine_labels",
    classes="fine_label_names",
    coarse=("coarse_labels", "coarse_label_names"),
)


def find_cifar(layout: Layout, folder: Path) -> Path | None:
    """The folder with all files of the set, or else its archive, or else a folder with some."""
    unpacked, archive = folder / layout.folder, folder / layout.archive
    if all((unpacked / name).is_file() for name in layout.files):
        return unpacked
    if archive.is_file():
        return archive
    return unpacked if unpacked.is_dir() else None


def load_cifar(layout: Layout, folder: Path) -> ImageData:
    """Read the set from where ``find_cifar`` found it.

    Labels are the classes; levels: ``coarse`` (superclasses, CIFAR-100 only) and ``noun`` (the word
    under which an image was collected, within its class), where the files have them.
    """
    place = find_cifar(layout, folder)
    assert place is not None, "the caller looks before it loads"
    found = _from_folder(layout, place) if place.is_dir() else _from_archive(layout, place)
    meta, where = found[layout.meta], f"{place}: {layout.meta}"
    classes = _names(meta, layout.classes, where)
    parts = [_split(layout, found, names, classes, place) for names in (layout.train, layout.test)]
    levels: list[dict[str, Level]] = [{}, {}]
    if layout.coarse is not None:
        key, names_key = layout.coarse
        names = _names(meta, names_key, where)
        for part, level in zip(parts, levels, strict=True):
            level["coarse"] = (torch.from_numpy(part.numbers(key, len(names))), names)
    files = [part.files() for part in parts]
    if all(some is not None for some in files):
        labels = [part.labels for part in parts]
        nouns = _noun_levels(cast("list[tuple[str, ...]]", files), labels, classes)
        for level, noun in zip(levels, nouns, strict=True):
            level["noun"] = noun
    sets = []
    for part, names_of_files, level in zip(parts, files, levels, strict=True):
        labels_of_part = torch.from_numpy(part.labels)
        sets.append(ImageSet(part.images(), labels_of_part, classes, names_of_files, level))
    return ImageData(layout.name, sets[0], sets[1], str(place))


def _from_folder(layout: Layout, place: Path) -> dict[str, Entries]:
    missing = [name for name in layout.files if not (place / name).is_file()]
    if missing:
        raise UsageError(
            f"{place}: {', '.join(missing)} missing; unpack {layout.archive} again beside it"
        )
    found = {}
    for name in layout.files:
        try:
            with (place / name).open("rb") as stream:
                found[name] = load_entries(stream, str(place / name))
        except OSError as error:
            raise UsageError(f"{place / name}: cannot be read ({error.strerror})") from None
    return found


def _from_archive(layout: Layout, place: Path) -> dict[str, Entries]:
    """Members are read in memory, in the order they come: nothing is written anywhere."""
    found: dict[str, Entries] = {}
    wanted = {f"{layout.folder}/{name}": name for name in layout.files}
    try:
        with LimitedGzip(place) as content, tarfile.open(fileobj=content, mode="r|") as archive:
            for member in archive:
                name = wanted.get(member.name.removeprefix("./"))
                if name is None or not member.isfile():
                    continue
                stream = cast(BinaryIO, archive.extractfile(member))
                found[name] = load_entries(stream, f"{place}: {name}")
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UsageError(f"{place}: truncated or damaged archive ({error})") from None
    missing = [name for name in layout.files if name not in found]
    if missing:
        raise UsageError(f"{place}: {', '.join(missing)} missing in it")
    return found


@dataclass
class _Part:
    """The batches of one split, each with what names it in errors."""

    batches: list[tuple[str, Entries]]
    labels: NDArray[np.int64]

    def images(self) -> torch.Tensor:
        """All batches in one tensor; each is let go once it is copied, to need no more memory."""
        count = len(self.labels)
        whole = np.empty((count, *SHAPE), dtype=np.uint8)
        start = 0
        for _, entries in self.batches:
            data = entries.pop("data")
            whole[start : start + len(data)] = data.reshape(-1, *SHAPE)
            start += len(data)
        return torch.from_numpy(whole)

    def numbers(self, key: str, below: int) -> NDArray[np.int64]:
        return np.concatenate([_numbers(entries, key, below, at) for at, entries in self.batches])

    def files(self) -> tuple[str, ...] | None:
        names: list[str] = []
        for where, entries in self.batches:
            if "filenames" not in entries:
                return None
            here = as_texts(entries["filenames"], f"{where}: filenames")
            _check_count("filenames", len(here), entries, where)
            names += here
        return tuple(names)


def _split(
    layout: Layout,
    found: dict[str, Entries],
    names: Sequence[str],
    classes: tuple[str, ...],
    place: Path,
) -> _Part:
    batches = [(f"{place}: {name}", found[name]) for name in names]
    for where, entries in batches:
        data = entries.get("data")
        if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != 3072:
            shape = data.shape if isinstance(data, np.ndarray) else type(data).__name__
            raise UsageError(f"{where}: 'data' must be bytes (n, 3072), not {shape}")
        if not len(data):
            raise UsageError(f"{where}: no images in it")
    part = _Part(batches, np.empty(0, dtype=np.int64))
    part.labels = part.numbers(layout.labels, len(classes))
    return part


def _numbers(entries: Entries, key: str, below: int, where: str) -> NDArray[np.int64]:
    values = entries.get(key)
    if not isinstance(values, list):
        raise UsageError(f"{where}: labels missing (no list {key!r} in it)")
    _check_count(key, len(values), entries, where)
    for position, value in enumerate(values):
        if type(value) is not int or not 0 <= value < below:
            # of all else only the type: the text of nested lists, or of a number, may never end
            short = isinstance(value, str | bytes | float) or (
                isinstance(value, int) and abs(value) < 1e20
            )
            shown = str(value)[:20] if short else type(value).__name__
            raise UsageError(
                f"{where}: {key} has {shown} at position {position}; must be from 0 to {below - 1}"
            )
    return np.array(values, dtype=np.int64)


def _check_count(key: str, count: int, entries: Entries, where: str) -> None:
    images = len(entries["data"])
    if count != images:
        raise UsageError(f"{where}: {count} {key} for {images} images")


def _names(meta: Entries, key: str, where: str) -> tuple[str, ...]:
    if not meta.get(key):
        raise UsageError(f"{where}: class names missing (no {key!r} in it)")
    return as_texts(meta[key], f"{where}: {key}")


def noun_of(file_name: str) -> str:
    """``fire_engine_s_000124.png`` was collected under fire_engine; ``manual2-skunk06.png`` and
    its like, added by hand to classes that were short of images, under skunk."""
    stem = file_name.rpartition(".")[0] or file_name
    by_hand = re.fullmatch(r"manual\d*-(.+?)\d*", stem)
    return by_hand[1] if by_hand else re.sub(r"_s_\d+$", "", stem)


def _noun_levels(
    files: list[tuple[str, ...]], labels: list[NDArray[np.int64]], classes: tuple[str, ...]
) -> list[Level]:
    """(class, noun) pairs, numbered together for both splits in the order of class and noun."""
    pairs = [
        [(label, noun_of(name)) for label, name in zip(some.tolist(), names, strict=True)]
        for some, names in zip(labels, files, strict=True)
    ]
    known = sorted(set().union(*pairs))
    number = {pair: place for place, pair in enumerate(known)}
    names = tuple(f"{classes[label]}/{noun}" for label, noun in known)
    return [(torch.tensor([number[pair] for pair in some]), names) for some in pairs]
