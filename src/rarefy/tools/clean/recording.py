"""What ``rarefy clean`` wrote: recorded in the folder itself, so that the same work is recognised
and can be undone exactly."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rarefy.core.errors import bad_value
from rarefy.core.reading import read_json
from rarefy.core.text import one_line
from rarefy.core.version import __version__
from rarefy.core.writing import RECORDS, command, file_hash, remove_folder
from rarefy.data.images.listing import listed

FORMAT = "rarefy clean 1"
RECORD = f"{RECORDS}/clean.json"
_OF_DESKTOPS = (".DS_Store", "Thumbs.db", "desktop.ini")
"""What looking into a folder leaves in it."""


@dataclass(frozen=True)
class Undone:
    """What ``undo`` removed, and from which data it had been made."""

    path: Path
    files: int
    data: str
    command: str


def record(folder: Path, about: dict[str, Any]) -> None:
    """Write down what is in a folder, each file by its hash, each link by where it leads."""
    told = {"format": FORMAT, "rarefy": __version__, "command": command(), **about}
    (folder / RECORDS).mkdir(exist_ok=True)
    text = json.dumps({**told, "files": _contents(folder)}, indent=1)
    (folder / RECORD).write_text(text + "\n", "utf-8")


def recorded(folder: Path) -> dict[str, Any] | None:
    """What is recorded of a folder; None where it is not one of ours."""
    try:
        told = read_json(folder / RECORD)
    except (OSError, ValueError):
        return None
    whole = isinstance(told, dict) and told.get("format") == FORMAT
    return told if whole and isinstance(told.get("files"), dict) else None


def changed_since(folder: Path, told: dict[str, Any]) -> list[str]:
    """Files that are gone, new or different since it was written."""
    then, now = told["files"], _contents(folder)
    return sorted(name for name in {*then, *now} if then.get(name) != now.get(name))


def undo(folder: str | Path) -> Undone:
    """Take back what ``clean`` did: its folder is removed, and with it nothing else. The data that
    it was made from were never changed. A folder in which something was changed or added since is
    refused."""
    path = Path(folder).expanduser()
    if not path.is_dir() or path.is_symlink():
        raise bad_value("undo", str(folder), "there is no such folder")
    told = recorded(path)
    if told is None:
        raise bad_value("undo", str(folder), "was not written by rarefy clean; nothing is removed")
    changed = changed_since(path, told)
    if changed:
        what = f"changed, added or gone since: {listed(changed, 5)}; nothing is removed"
        raise bad_value("undo", str(folder), f"{what} (move what you need away, then remove it)")
    remove_folder(Path(os.path.abspath(path)))
    return Undone(path, len(told["files"]), told.get("data", ""), told.get("command", ""))


def _contents(folder: Path) -> dict[str, str]:
    """Every file below the folder (but our record) by its hash, every link by its target, and
    folders that are empty."""
    found = {}
    for place, folders, files in os.walk(folder):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        if not folders and not files and here != folder / RECORDS:
            found[_name(here, folder)] = "empty folder"
        for name in (*links, *files):
            path = here / name
            said = _name(path, folder)
            if name in _OF_DESKTOPS or said == RECORD:
                continue
            linked = path.is_symlink()
            found[said] = f"-> {one_line(os.readlink(path))}" if linked else file_hash(path)
    return found


def _name(path: Path, folder: Path) -> str:
    return one_line(path.relative_to(folder).as_posix())
