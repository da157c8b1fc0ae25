"""Labels given by name become levels of both splits, once they fit the set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.levels import CLASS, label_levels, level_of
from rarefy.data.images.image_set import ImageData, ImageSet, Level
from rarefy.data.images.listing import counted, listed

FILE = "file"
"""What labels are given to, where they are given to images."""
NAMED = 3
"""So many are named in a note."""


@dataclass(frozen=True)
class Annotations:
    """What somebody says about a set: at each level, a label of each class."""

    where: str
    """The file, for messages."""
    levels: Mapping[str, Mapping[str, str]]
    """Label by class, by name of the level."""
    of: str = CLASS
    """What the labels are given to: ``class``, another level, or ``FILE``."""
    notes: tuple[str, ...] = ()


def attach(data: ImageData, given: Annotations) -> ImageData:
    """The same data with these levels. A level that is there already must say the same; one with
    a single label teaches nothing, and is left out with a note."""
    bases = [_base(split, given.of) for split in (data.train, data.test)]
    here = list(dict.fromkeys(name for _, names in bases for name in names))
    said = {key for labels in given.levels.values() for key in labels}
    notes = [*given.notes, *note_of_ignored(said - set(here), given.of, given.where)]
    added: list[dict[str, Level]] = [{}, {}]
    for level, labels in given.levels.items():
        _check_all(here, level, labels, given)
        names = tuple(sorted({labels[key] for key in here}))
        number = {name: place for place, name in enumerate(names)}
        new = []
        for old, keys in bases:
            numbers = torch.tensor([number[labels[key]] for key in keys], device=old.device)
            new.append((numbers[old], names))
        if _is_there(data, level, new, given.where):
            continue
        if len(names) == 1:
            notes.append(f"{given.where}: level {level!r} has one label, {names[0]!r}: left out")
            continue
        for split, one in zip(added, new, strict=True):
            split[level] = one
    return _with(data, added, notes)


def note_of_ignored(names: Collection[str], of: str, where: str) -> list[str]:
    """A note about names that the set has not, if there are any."""
    if not names:
        return []
    kind = "file" if of == FILE else "class"
    return [
        f"{where}: {counted(len(names), 'name')} ignored, no {kind} of this set: "
        f"{listed(sorted(names), NAMED)}"
    ]


def put_once(labels: dict[str, str], key: str, label: str, where: str, what: str) -> None:
    """Add an entry; an empty one, or a second that says something else, is an error."""
    if not key:
        raise UsageError(f"{where}: an empty name (its {what} is {label!r})")
    if not label:
        raise UsageError(f"{where}: empty {what} of {key!r}")
    if labels.setdefault(key, label) != label:
        both = f"{labels[key]!r} and {label!r}"
        raise UsageError(f"{where}: {key!r} has more than one {what}: {both}")


def _base(images: ImageSet, of: str) -> Level:
    if of != FILE:
        return level_of(images, of)
    files = images.files or ()
    return torch.arange(len(files), device=images.labels.device), files


def _check_all(
    here: Sequence[str], level: str, labels: Mapping[str, str], given: Annotations
) -> None:
    missing = [repr(key) for key in here if key not in labels]
    if missing:
        kind = "file" if given.of == FILE else "class"
        raise UsageError(f"{given.where}: no {level!r} of {kind} {listed(missing, NAMED)}")


def _is_there(data: ImageData, level: str, new: Iterable[Level], where: str) -> bool:
    pairs = zip((data.train, data.test), new, strict=True)
    for split, (labels, names) in pairs:
        if level not in label_levels(split):
            return False
        old_labels, old_names = level_of(split, level)
        old = [old_names[label] for label in old_labels.tolist()]
        if old != [names[label] for label in labels.tolist()]:
            raise UsageError(f"{where}: the set has a level {level!r} already, with other labels")
    return True


def _with(data: ImageData, added: list[dict[str, Level]], notes: list[str]) -> ImageData:
    splits = []
    for split, levels in zip((data.train, data.test), added, strict=True):
        more = replace(split, levels={**split.levels, **levels})
        if "ids" in split.__dict__:
            more.__dict__["ids"] = split.ids
        splits.append(more)
    told = dict.fromkeys((*data.notes, *notes))
    found = replace(data, train=splits[0], test=splits[1], notes=tuple(told))
    # mean, std and fingerprint do not depend on levels
    found.__dict__.update({key: data.__dict__[key] for key in data.__dict__.keys() - vars(found)})
    return found
