"""Which image files a folder of class folders holds, and how it is split."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rarefy.core.errors import UsageError
from rarefy.data.images.listing import counted, listed

EXTENSIONS = frozenset(
    ".avif .bmp .dib .gif .jfif .jpe .jpeg .jpg .pbm .pgm .png .pnm .ppm .tif .tiff .webp".split()
)
TRAIN_NAMES = ("train",)
TEST_NAMES = ("test", "val", "valid", "validation")
"""The first that is there is what is tested on."""


class NoClasses(UsageError):
    """Folders in it are no classes, or there are none; there may be images."""


Visited = dict[tuple[int, int], tuple[Path, Path]]
"""Of each folder, by device and number: the class folder below which it was met, and its path."""


@dataclass(frozen=True)
class FolderFiles:
    """The files of a folder: (path, class) pairs, ordered by class, then by path."""

    root: Path
    classes: tuple[str, ...]
    train: tuple[tuple[Path, int], ...]
    test: tuple[tuple[Path, int], ...] | None
    """None where the folder has no split of its own."""
    others: int
    """Files that are no images, judged by their extension."""
    test_name: str | None = None


def scan(root: Path) -> FolderFiles:
    """Look at ``root/train/CLASS/*`` and ``root/test/CLASS/*`` (or val, valid, validation), or at
    ``root/CLASS/*``. Everything wrong with the layout is told in one error."""
    folders = _subfolders(root)
    train, test = _own_split(folders)
    if train is None and test is not None and set(folders) <= {*TEST_NAMES, test.name}:
        raise UsageError(f"{root}: has {test.name}/ but no train/ (class folders go into both)")
    if train is not None and test is None:
        raise UsageError(
            f"{root}: has {train.name}/ but no test/ (nor val/); to split {train.name}/ "
            f"by content, give {train} itself"
        )
    if train is None or test is None:
        return _unsplit(root, folders)
    return _split(root, train, test)


def both_splits(root: Path) -> tuple[Path, Path] | None:
    """The folders trained and tested on, of a folder that has both."""
    train, test = _own_split(_subfolders(root))
    return None if train is None or test is None else (train, test)


def _own_split(folders: dict[str, Path]) -> tuple[Path | None, Path | None]:
    """A ``train`` without folders in it that stands among others is a class of that name."""
    train, test = _first(folders, TRAIN_NAMES), _first(folders, TEST_NAMES)
    others = [name for name in folders if name.lower() not in (*TRAIN_NAMES, *TEST_NAMES)]
    if train is not None and others and not _subfolders(train):
        return None, None
    return train, test


def _unsplit(root: Path, folders: dict[str, Path]) -> FolderFiles:
    classes = tuple(sorted(folders))
    _need_classes(root, classes)
    pairs, others, problems = _gather(root, folders, classes, {})
    _complain(root, problems)
    return FolderFiles(root, classes, pairs, None, others)


def _split(root: Path, train: Path, test: Path) -> FolderFiles:
    here, there = _subfolders(train), _subfolders(test)
    classes = tuple(sorted({*here, *there}))
    _need_classes(train, classes)
    problems = [f"class {name!r} is missing in {test.name}/" for name in sorted({*here} - {*there})]
    problems += [
        f"class {name!r} is missing in {train.name}/" for name in sorted({*there} - {*here})
    ]
    visited: Visited = {}
    train_pairs, train_others, train_problems = _gather(root, here, classes, visited)
    test_pairs, test_others, test_problems = _gather(root, there, classes, visited)
    _complain(root, [*problems, *train_problems, *test_problems])
    return FolderFiles(
        root, classes, train_pairs, test_pairs, train_others + test_others, test.name
    )


def _need_classes(root: Path, classes: tuple[str, ...]) -> None:
    if not classes:
        raise NoClasses(f"{root}: no class folders in it (expected {root.name}/CLASS/image.png)")
    if len(classes) == 1:
        raise NoClasses(f"{root}: only one class folder, {classes[0]!r}; at least 2 are needed")


def _complain(root: Path, problems: list[str]) -> None:
    if problems:
        raise UsageError(f"{root}: {listed(problems)}")


def _gather(
    root: Path, folders: dict[str, Path], classes: tuple[str, ...], visited: Visited
) -> tuple[tuple[tuple[Path, int], ...], int, list[str]]:
    """The images of each class, a count of other files, and the classes without images."""
    pairs: list[tuple[Path, int]] = []
    others = 0
    problems = []
    for label, name in enumerate(classes):
        if name not in folders:
            continue
        paths, more = images_below(folders[name], visited)
        others += more
        pairs += [(path, label) for path in paths]
        if not paths:
            shown = folders[name].relative_to(root).as_posix()
            holds = f"holds no images ({counted(more, 'other file')})" if more else "is empty"
            problems.append(f"class folder {shown!r} {holds}")
    return tuple(pairs), others, problems


def images_below(folder: Path, visited: Visited | None = None) -> tuple[list[Path], int]:
    """Image files at any depth, sorted, and how many files are something else. Links are followed,
    each folder once, so that a loop of links ends; a folder that is ``visited`` already below
    another class would make its images copies with two labels."""
    images: list[Path] = []
    others = 0
    visited = {} if visited is None else visited
    for place, folders, files in os.walk(folder, followlinks=True, onerror=_unreadable):
        status = os.stat(place)
        before = visited.setdefault((status.st_dev, status.st_ino), (folder, Path(place)))
        if before[0] != folder:
            raise UsageError(
                f"{place}: is the same folder as {before[1]}, so that {folder.name!r} would hold "
                f"images of {before[0].name!r}; remove the link"
            )
        if before[1] != Path(place):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not _hidden(name))
        for name in files:
            if _hidden(name):
                continue
            if os.path.splitext(name)[1].lower() in EXTENSIONS:
                images.append(Path(place, name))
            else:
                others += 1
    return sorted(images), others


def _subfolders(folder: Path) -> dict[str, Path]:
    try:
        return {
            path.name: path for path in folder.iterdir() if path.is_dir() and not _hidden(path.name)
        }
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read ({error.strerror})") from None


def _unreadable(error: OSError) -> None:
    raise UsageError(f"{error.filename}: cannot be read ({error.strerror})") from None


def _first(folders: dict[str, Path], names: tuple[str, ...]) -> Path | None:
    """The folder with the first of these names, however its letters are cased."""
    for wanted in names:
        for name in sorted(folders):
            if name.lower() == wanted:
                return folders[name]
    return None


def _hidden(name: str) -> bool:
    """Also what macOS puts into archives beside the real files."""
    return name.startswith(".") or name == "__MACOSX"
