"""The data sets that are known by name, and loading one of them or a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.data.images.cifar import CIFAR10, CIFAR100, Layout, find_cifar, load_cifar
from rarefy.data.images.digits import load_digits
from rarefy.data.images.download import RemoteFile, fetch
from rarefy.data.images.folders import FolderOptions, load_folder
from rarefy.data.images.image_set import ImageData
from rarefy.data.images.listing import spell_bytes
from rarefy.data.images.mnist import FILES, RAW, find_mnist, load_mnist
from rarefy.data.images.official_files import CIFAR10_FILES, CIFAR100_FILES, MNIST_FILES
from rarefy.data.images.places import absence_error, data_folder


@dataclass(frozen=True)
class KnownSet:
    """A set that can be loaded by name. Its numbers are those of the official set."""

    name: str
    about: str
    train: int
    test: int
    classes: int
    shape: tuple[int, int, int]
    load: Callable[[Path], ImageData]
    find: Callable[[Path], list[Path]]
    """What of it lies in a data folder; empty if it could not be loaded."""
    looked_for: str = ""
    remote: tuple[RemoteFile, ...] = ()
    """Empty for what needs no fetching."""

    def by_hand(self, folder: Path) -> str:
        """What to put where, for a machine without a network."""
        source, _, first = self.remote[0].url.rpartition("/")
        names = ", ".join([first, *(file.url.rpartition("/")[2] for file in self.remote[1:])])
        return f"put {names} from {source} into {(folder / self.remote[0].path).parent}"


def _find_mnist(folder: Path) -> list[Path]:
    found = find_mnist(folder)
    return list(found.values()) if len(found) == len(FILES) else []


def _find_cifar(layout: Layout, folder: Path) -> list[Path]:
    place = find_cifar(layout, folder)
    if place is None:
        return []
    # a folder with files missing counts as there: loading it says which
    return [place / name for name in layout.files] if place.is_dir() else [place]


SETS: dict[str, KnownSet] = {
    known.name: known
    for known in (
        KnownSet(
            name="digits",
            about="handwritten digits, comes with scikit-learn",
            train=1438,
            test=359,
            classes=10,
            shape=(1, 8, 8),
            load=lambda folder: load_digits(),
            find=lambda folder: [],
        ),
        KnownSet(
            name="mnist",
            about="handwritten digits",
            train=60_000,
            test=10_000,
            classes=10,
            shape=(1, 28, 28),
            load=load_mnist,
            find=_find_mnist,
            looked_for=f"{FILES[0]} and three more, with or without .gz, here or in {RAW}",
            remote=MNIST_FILES,
        ),
        KnownSet(
            name="cifar10",
            about="small photographs of animals and vehicles",
            train=50_000,
            test=10_000,
            classes=10,
            shape=(3, 32, 32),
            load=partial(load_cifar, CIFAR10),
            find=partial(_find_cifar, CIFAR10),
            looked_for=f"{CIFAR10.folder} or {CIFAR10.archive}",
            remote=CIFAR10_FILES,
        ),
        KnownSet(
            name="cifar100",
            about="small photographs, 100 classes in 20 superclasses",
            train=50_000,
            test=10_000,
            classes=100,
            shape=(3, 32, 32),
            load=partial(load_cifar, CIFAR100),
            find=partial(_find_cifar, CIFAR100),
            looked_for=f"{CIFAR100.folder} or {CIFAR100.archive}",
            remote=CIFAR100_FILES,
        ),
    )
}


def load_images(
    name_or_path: str | Path, folder: Path | str | None = None, **options: Any
) -> ImageData:
    """A known set by name, or a folder of class folders by its path.

    ``folder`` is where known sets lie (default: ``RAREFY_DATA``, or the user's cache). ``options``
    are for a path: ``size``, ``test_share``, ``channels``, ``skip_bad`` (see ``FolderOptions``).
    """
    known = SETS.get(str(name_or_path)) if isinstance(name_or_path, str) else None
    if known is None:
        return load_folder(class_folder(name_or_path), folder_options(options))
    for option, value in options.items():
        raise bad_value(option, value, f"is for folders of images, {known.name} has none")
    place = data_folder(folder)
    if known.remote and not known.find(place):
        raise absence_error(known.name, known.looked_for, place, known.by_hand(place))
    return known.load(place)


def class_folder(name_or_path: str | Path) -> Path:
    """A path that is a folder, or an error about a name that nobody knows."""
    text = str(name_or_path)
    path = Path(text).expanduser() if text.startswith("~") else Path(text)
    if text and path.is_dir():
        return path
    if text and path.exists():
        raise UsageError(f"{text} is a file; a folder of class folders is needed")
    separators = [mark for mark in (os.sep, os.altsep) if mark]
    if any(mark in text for mark in separators) or text.startswith((".", "~")):
        raise UsageError(f"there is no folder {text}")
    raise UsageError(f"{unknown('data set', text, SETS)}, nor is there a folder of that name")


def folder_options(options: dict[str, Any]) -> FolderOptions:
    """Options by name; an unknown one is an error with the nearest."""
    known = [field.name for field in fields(FolderOptions)]
    for option in options:
        if option not in known:
            raise unknown("option", option, known)
    return FolderOptions(**options)


def fetch_set(name: str, folder: Path | str | None = None, progress: bool = True) -> list[Path]:
    """Fetch what is missing of a known set; the files that were brought, none if all are there."""
    if name not in SETS:
        raise unknown("data set", name, SETS)
    known, place = SETS[name], data_folder(folder)
    if not known.remote or known.find(place):
        return []
    here = find_mnist(place) if name == "mnist" else {}
    wanted = [file for file in known.remote if Path(file.path).stem not in here]
    return [fetch(file, place, progress) for file in wanted]


def describe_set(name: str, folder: Path | str | None = None) -> dict[str, Any]:
    """What a listing shows of a known set: its official size, and whether and where it is here."""
    known, place = SETS[name], data_folder(folder)
    found = known.find(place)
    sizes = sum(path.stat().st_size for path in found if path.is_file())
    if not known.remote:
        where = "in scikit-learn"
    elif not found:
        download = sum(file.size for file in known.remote)
        where = f"rarefy data fetch {name} ({spell_bytes(download)})"
    else:
        where = str(found[0] if len(found) == 1 else found[0].parent)
    return {
        "name": name,
        "about": known.about,
        "present": bool(found) or not known.remote,
        "where": where,
        "train": known.train,
        "test": known.test,
        "classes": known.classes,
        "shape": list(known.shape),
        "bytes": sizes,
    }
