"""How a store comes into being as a whole, and what lies beside it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rarefy.core.place import AnyPlace, Place, Remote, user_cache
from rarefy.core.writing import flush
from rarefy.sweep.chunks import flush_all

BUILDING, OLD = "building", "old"


def beside(path: AnyPlace, what: str) -> AnyPlace:
    """What lies beside a store and belongs to it: its lock, its trainings under way (scratch)."""
    return path.with_name(f".{path.name}.{what}")


def along(path: Path, what: str) -> Path:
    """What a run makes beside its store for people to see: saved networks, the race before it."""
    return path.with_name(f"{path.name}-{what}")


def scratch_of(path: Place, attributes: Mapping[str, Any]) -> Path:
    """A folder for trainings under way: beside the store, or, where that has an address, in the
    user's cache, of this very store and its inputs (another machine may have made it anew)."""
    if isinstance(path, Path):
        return beside(path, "scratch")
    told = [path.url, attributes.get("id"), attributes.get("inputs")]
    name = hashlib.blake2b(json.dumps(told).encode(), digest_size=8).hexdigest()
    try:
        cache = user_cache().expanduser()
    except RuntimeError:  # nobody's home
        cache = Path(tempfile.gettempdir())
    return cache / "rarefy" / "scratch" / f"{path.name}-{name}"


def make(path: Place, describe: Callable[[Place], None], scratch: Path) -> None:
    """Put what ``describe`` writes in the place of whatever is at ``path``, all at once.
    ``scratch``: of the store that is replaced."""
    if isinstance(path, Remote):
        mark = beside(path, BUILDING)
        mark.write_bytes(b"")  # as long as it is there, what is at the path counts as nothing
        shutil.rmtree(scratch, ignore_errors=True)
        path.remove_tree()
        describe(path)
        mark.unlink()
        return
    # the parents exist: the lock lies in the same folder
    building, old = beside(path, BUILDING), beside(path, OLD)
    describe(building)
    flush_all([building, *building.rglob("*")])
    shutil.rmtree(scratch, ignore_errors=True)
    if path.exists():
        path.rename(old)
    building.rename(path)
    flush(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def is_being_made(path: Place) -> bool:
    """Whether what is at an address was not finished: nothing there can be renamed."""
    return isinstance(path, Remote) and beside(path, BUILDING).exists()


def clear(path: Place) -> None:
    """Remove what a kill has left of files."""
    if isinstance(path, Path):
        for what in (BUILDING, OLD):
            shutil.rmtree(beside(path, what), ignore_errors=True)
