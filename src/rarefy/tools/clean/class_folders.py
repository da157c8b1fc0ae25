"""Cleaned images as folders of class folders: links or copies of files, or pictures made of pixels.

A file whose label was changed goes into the other class's folder, under its name; where that is
taken there, its old class stands in the name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

import numpy as np
from PIL import Image

from rarefy.core.errors import RunError, UsageError, bad_value
from rarefy.core.progress import Progress
from rarefy.data.images import load_images
from rarefy.data.images.catalog import SETS
from rarefy.data.images.folder_scan import scan
from rarefy.data.images.folders import MANY, relative_name
from rarefy.data.images.listing import counted, listed
from rarefy.tools.clean.picks import Decisions
from rarefy.tools.samples.samples import Samples

T = TypeVar("T")
Places = dict[int, str]
"""Where a sample is afterwards, below the folder that is written."""


def write_class_folders(
    root: Path, samples: Samples, decisions: Decisions, target: Path, copy: bool
) -> tuple[Places, list[str]]:
    """All images of a folder but the dropped ones; parts that no page was made of (``test/``) stay
    as they are. Gives places and notes."""
    found = scan(root)
    at = 0 if found.test is None else 1  # which part of a name is the class
    row_of = {name: row for row, name in enumerate(samples.files or ())}
    sources: dict[str, Path] = {}
    moved: list[tuple[int, str, Path]] = []
    places: Places = {}
    left_out = 0
    for path, _ in (*found.train, *(found.test or ())):
        name = relative_name(path, root)
        row = row_of.get(name)
        if row is None:
            unread = any(text.startswith(f"{name} (") for text in samples.left_out)
            left_out += unread
            if not unread:
                sources[name] = path
        elif decisions.moved[row]:
            moved.append((row, name, path))
        elif decisions.keep[row]:
            sources[name] = path
            places[row] = name
    taken = {_folded(name) for name in sources}
    for row, name, path in moved:
        words = name.split("/")
        old, words[at] = words[at], samples.classes[decisions.after[row]]
        names = _names("/".join(words), old)
        places[row] = next(free for free in names if _folded(free) not in taken)
        sources[places[row]] = path
        taken.add(_folded(places[row]))
    _need_parts(samples, sources, at)
    for name in _with_bar([*sources]):
        _put(sources[name], target / name, copy)
    _need_names(target, sources)
    notes = [f"{counted(left_out, 'file')} that cannot be read left out"] if left_out else []
    if found.others:
        notes.append(f"{counted(found.others, 'file')} that is no image not taken along")
    return places, notes


def _folded(name: str) -> str:
    """Some disks take both cases of a letter for one, or both spellings of an accented one."""
    return unicodedata.normalize("NFC", name).casefold()


def _need_names(target: Path, names: Iterable[str]) -> None:
    """On such a disk one image would have the place of another, or two classes one folder."""
    every = {str(part) for name in names for part in (name, *PurePosixPath(name).parents[:-1])}
    if len(every) != sum(len(folders + files) for _, folders, files in os.walk(target)):
        folded = Counter(map(_folded, every))
        alike = sorted(name for name in every if folded[_folded(name)] > 1)
        what = f"its disk has one name for {listed(alike)}"
        raise bad_value("out", str(target.parent), f"{what}; rename one, or name another --out")


def _names(name: str, old: str) -> Iterator[str]:
    stem, ending = os.path.splitext(name)
    yield name
    yield f"{stem}-from-{old}{ending}"
    number = 2
    while True:
        yield f"{stem}-from-{old}-{number}{ending}"
        number += 1


def _need_parts(samples: Samples, names: dict[str, Path], at: int) -> None:
    """A class must be in both parts of a folder or in none: nobody could read it else."""
    if not at:
        return
    there = {tuple(name.split("/")[:2]) for name in names}
    for part in sorted({part for part, _ in there}):
        gone = {name for _, name in there} - {name for p, name in there if p == part}
        if gone:
            raise UsageError(
                f"{samples.name}: no image of {listed(sorted(gone))} would be left in {part}/, "
                "though there are some in the other part"
            )


def _put(source: Path, target: Path, copy: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if copy:
        shutil.copy2(source, target)
        return
    try:
        with contextlib.suppress(FileExistsError):  # (told afterwards, with all of its kind)
            os.symlink(os.path.realpath(source), target)
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"no links can be made here ({reason}): pass --copy (copy=True)") from None


# ------------------------------------------------------------------------- pictures made of pixels


def can_be_pictures(samples: Samples) -> bool:
    """Whether class folders of PNG files would hold these samples exactly."""
    pixels = samples.images is not None and samples.features.dtype == np.uint8
    named = all(
        name and not name.startswith(".") and not set("/\\\0") & set(name)
        for name in samples.classes
    )
    return pixels and named and samples.image is not None and samples.image[0] in (1, 3)


def write_pictures(name: str, samples: Samples, decisions: Decisions, target: Path) -> Places:
    """PNG files, of a set that is known by name in ``train/`` and ``test/``: the part that no page
    was made of is taken along."""
    assert samples.images is not None
    if name not in SETS:
        places = _drawn(samples, decisions, target, "", range(len(samples)))
        _need_names(target, places.values())
        return places
    data, split = load_images(name), samples.split
    first = len(data.train) if split in ("train", "all") else 0
    places = _drawn(samples, decisions, target, "train/", range(first))
    places |= _drawn(samples, decisions, target, "test/", range(first, len(samples)))
    for part, images in (("train", data.train), ("test", data.test)):
        if split in (part, "all"):
            continue
        for row in _with_bar(range(len(images))):
            shown = images.images[row].permute(1, 2, 0).numpy()
            path = target / f"{part}/{images.classes[images.labels[row]]}/{row:06d}.png"
            _save(shown[:, :, 0] if shown.shape[2] == 1 else shown, path)
    classes = {part: {p.name for p in (target / part).iterdir()} for part in ("train", "test")}
    for gone in sorted(classes["train"] ^ classes["test"]):
        what = "no image would be left in one part, though there are some in the other"
        raise bad_value("class", gone, what)
    return places


def _drawn(samples: Samples, decisions: Decisions, target: Path, part: str, rows: range) -> Places:
    assert samples.images is not None
    places = {
        row: f"{part}{samples.classes[decisions.after[row]]}/{row - rows.start:06d}.png"
        for row in rows
        if decisions.keep[row]
    }
    for row in _with_bar([*places]):
        _save(samples.images(row), target / places[row])
    return places


def _with_bar(things: Sequence[T]) -> Iterator[T]:
    """Where there are many, with a progress bar."""
    if len(things) < MANY:
        yield from things
        return
    with Progress("cleaned images", len(things)) as bar:
        for thing in things:
            yield thing
            bar.advance(1)


def _save(pixels: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.ascontiguousarray(pixels)).save(path)
