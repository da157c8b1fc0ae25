"""Folders inside class folders are subclasses."""

from __future__ import annotations

from collections import defaultdict

from rarefy.data.hierarchy.attaching import FILE, Annotations
from rarefy.data.images.image_set import ImageData

NAME = "subfolder"


def from_nested_folders(data: ImageData) -> Annotations | None:
    """``subfolder``, ``subfolder-2``, ... of images in ``CLASS/SUB/SUB/...``, None if there are
    none. What has no folders inside is its own subclass; where only some of its images lie in
    folders, nobody can say what the others are: a note, and no level. A folder alone in its class
    (``CLASS/images/``) makes no level."""
    groups = _folders_below_class(data)
    if not groups:
        return None
    levels: dict[str, dict[str, str]] = {}
    notes = []
    labels = {file: path[0] for file, path in groups.items()}
    depth = max(map(len, groups.values()))
    for below in range(1, depth):
        deep = defaultdict(set)
        for path in groups.values():
            deep[path[:below]].add(len(path) > below)
        mixed = sorted("/".join(path) for path, found in deep.items() if len(found) > 1)
        if mixed:
            notes.append(
                f"only some images of {mixed[0]!r} lie in folders inside it: no subclasses"
            )
            break
        finer = {file: "/".join(path[: below + 1]) for file, path in groups.items()}
        if len(set(finer.values())) > len(set(labels.values())):
            number = len(levels) + 1
            levels[NAME if number == 1 else f"{NAME}-{number}"] = finer
        labels = finer
    return Annotations(data.source, levels, FILE, tuple(notes))


def _folders_below_class(data: ImageData) -> dict[str, tuple[str, ...]]:
    """Class and folders inside it, by file; empty if files do not lie in class folders. Those of a
    set with a split of its own lie in ``train/CLASS`` and ``test/CLASS``."""
    found = [
        (file, file.split("/")[:-1], split.classes[label])
        for split in (data.train, data.test)
        for file, label in zip(split.files or (), split.labels.tolist(), strict=bool(split.files))
    ]
    for skipped in (0, 1):
        if all(path[skipped : skipped + 1] == [name] for _, path, name in found):
            return {file: tuple(path[skipped:]) for file, path, _ in found}
    return {}
