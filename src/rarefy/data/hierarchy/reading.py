"""Hierarchies of a set, from what it knows itself and from annotations in whatever format."""

from __future__ import annotations

from pathlib import Path

from rarefy.core.errors import UsageError
from rarefy.core.reading import read_text
from rarefy.data.hierarchy.attaching import Annotations, attach
from rarefy.data.hierarchy.csv_files import read_csv
from rarefy.data.hierarchy.groupings import known_groupings
from rarefy.data.hierarchy.json_files import json_pairs, parse_json
from rarefy.data.hierarchy.nested_folders import from_nested_folders
from rarefy.data.hierarchy.parent_map import chain_levels, one_parent_each
from rarefy.data.images.image_set import ImageData
from rarefy.data.images.listing import listed

FORMATS = (".csv", ".tsv", ".json")


def with_hierarchy(data: ImageData, source: str | Path = "") -> ImageData:
    """The same data with further levels on both splits.

    Always: groups of known sets, and folders inside class folders. ``source`` adds the levels of a
    file, or of a folder with one such file: a parent map (CSV, JSON) or label columns (CSV).
    """
    nested = from_nested_folders(data)
    for own in (*known_groupings(data), *([nested] if nested else [])):
        data = attach(data, own)
    if not str(source):
        return data
    return attach(data, _read(_file(Path(source).expanduser()), data))


def _file(path: Path) -> Path:
    if path.is_dir():
        inside = (one for one in sorted(path.iterdir()) if one.suffix.lower() in FORMATS)
        found = [one for one in inside if one.is_file()]
        if len(found) != 1:
            names = f"{len(found)} ({listed([one.name for one in found], 3)})" if found else "none"
            kinds = ", ".join(FORMATS)
            raise UsageError(f"{path}: one file of annotations ({kinds}) is needed, found {names}")
        return found[0]
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: unknown format of a hierarchy, must be {', '.join(FORMATS)}")
    return path


def _read(path: Path, data: ImageData) -> Annotations:
    where, text, suffix = str(path), read_text(path), path.suffix.lower()
    if not text.strip():
        raise UsageError(f"{where}: is empty")
    if suffix == ".json":
        parents = one_parent_each(json_pairs(parse_json(text, where), where), where)
        return chain_levels(parents, data.classes, where)
    return read_csv(text, where, data)
