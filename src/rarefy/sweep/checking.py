"""Whether what rarefy wrote is still as it was written: stores, results, networks, ledgers, pages.

Each kind has one function that says what is wrong with a thing, or nothing.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rarefy.core.contracts import NONFINITE_STEP
from rarefy.core.errors import RarefyError, UsageError
from rarefy.core.place import Place, Remote, Unreachable, as_place
from rarefy.core.reading import read_tensors
from rarefy.core.writing import RECORDS, is_intact, record_of
from rarefy.ledger.verdicts import check_ledger
from rarefy.sweep.chunks import NEEDED, find_damage, has_checksums, in_short, open_array
from rarefy.sweep.examine import MARK, examine
from rarefy.sweep.results import find_results, read_description, read_results
from rarefy.sweep.spec import Find
from rarefy.sweep.store import open_store

OK, DAMAGED, UNCHECKED, REPAIRED = "ok", "damaged", "no checksums", "repaired"
FOREIGN, NOT_OURS = "not rarefy's", "not a network that rarefy wrote"


@dataclass(frozen=True)
class Thing:
    """Something that can be checked: ``kind`` is store, results, network, ledger or output (any
    other file that rarefy has a record of)."""

    kind: str
    path: Place


@dataclass(frozen=True)
class Finding:
    """``state``: ok, damaged, no checksums (whole as far as can be told), repaired, or not
    rarefy's."""

    thing: Thing
    state: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.thing.path}: {self.state}{': ' if self.what else ''}{self.what}"


def find_things(path: Place | str) -> list[Thing]:
    """What there is to check at a path, or in the folders below it; at an address stores and
    results alone."""
    path = as_place(path, "path")
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    if path.is_file():
        found = [each for each in _in_folder(path.parent) if _names(each, path)]
        # a network that does not look like one any more is still meant to be one
        meant = path.suffix == ".pt" and isinstance(path, Path)
        found = found or ([Thing("network", path)] if meant else [])
    else:
        found = list(_below(path))
    if not found:
        raise UsageError(
            f"{path}: nothing there that can be checked (stores, results, saved networks, ledgers)"
        )
    return found


def _names(thing: Thing, path: Place) -> bool:
    pair = thing.kind == "results" and path.suffix in (".json", ".parquet")
    return thing.path == path or (pair and thing.path.with_suffix(path.suffix) == path)


def _below(top: Place) -> Iterator[Thing]:
    if isinstance(top, Remote):
        if _is_store(top):
            yield Thing("store", top)
            return
        yield from _in_folder(top)
        for each in top.iterdir():
            if not each.name.startswith(".") and each.is_dir():
                yield from _below(each)
        return
    seen: set[str] = set()
    for name, folders, _ in os.walk(top, followlinks=True):
        folder = Path(name)
        if os.path.realpath(name) in seen:  # (a link that leads upwards)
            folders.clear()
            continue
        seen.add(os.path.realpath(name))
        if _is_store(folder):
            folders.clear()
            yield Thing("store", folder)
            continue
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        yield from _in_folder(folder)


def _in_folder(folder: Place) -> Iterator[Thing]:
    pairs = find_results(folder)
    # (no pipe, which would be waited for)
    tables: list[Place] = sorted(path for path in folder.glob("*.parquet") if path.is_file())
    for table in (*pairs, *(each for each in tables if each not in pairs and _is_ours(each))):
        yield Thing("results", table)
    if isinstance(folder, Remote):
        return
    for path in filter(Path.is_file, sorted(folder.glob("*.pt"))):
        yield Thing("network", path)
    for record in sorted((folder / RECORDS).glob("*.json")):
        path = folder / record.stem
        if path.is_file() and path.suffix != ".pt":
            yield Thing("output", path)
    verdicts = sorted(folder.glob("verdicts-*.json"))
    for path in (*verdicts, *folder.glob("*.toml")) if verdicts else ():
        yield Thing("ledger", path)


def _is_store(folder: Place) -> bool:
    try:
        if f'"{MARK}"' in (folder / "zarr.json").read_text("utf-8", "replace"):
            return True
    except Unreachable:
        raise
    except OSError:
        pass
    return sum((folder / name / "zarr.json").exists() for name in NEEDED) > 1


def _is_ours(path: Place) -> bool:
    """Whether a table without its description was written by ``write_results``."""
    try:
        file = path if isinstance(path, Path) else io.BytesIO(path.read_bytes())
        return NONFINITE_STEP.name in pq.read_schema(file).names
    except Unreachable:
        raise
    except (OSError, pa.ArrowException):
        return False


# ---------------------------------------------------------------------------------------- the kinds


def check(thing: Thing, find: Find[Any], repair: bool = False) -> Finding:
    """Look at one thing; with ``repair`` put a damaged store right, as far as it can be. ``find``
    knows experiments by name."""
    try:
        if thing.kind == "store":
            return _check_store(thing, find, repair)
        if thing.kind == "results":
            read_results(thing.path, find)
            hashed = "parquet" in read_description(thing.path.with_suffix(".json"))
            return Finding(thing, OK if hashed else UNCHECKED)
        assert isinstance(thing.path, Path)  # all else lies on this machine
        wrong = check_written(thing.path)
        kinds = {"network": _check_network, "ledger": check_ledger}
        if not wrong and thing.kind in kinds:
            wrong = kinds[thing.kind](thing.path)
        if wrong.startswith(NOT_OURS) and record_of(thing.path) is None:
            return Finding(thing, FOREIGN)
        return Finding(thing, DAMAGED if wrong else OK, wrong)
    except RarefyError as error:
        return Finding(thing, DAMAGED, str(error))


def _check_store(thing: Thing, find: Find[Any], repair: bool) -> Finding:
    if examine(thing.path) is None:
        return Finding(thing, DAMAGED, "was not finished when it was made; the same run makes it")
    store = None
    try:
        store = open_store(thing.path, find)
        found = store.arrays.damage()
    except UsageError:  # its study is not installed, or has moved on: what is there can be checked
        found = find_damage(thing.path)
    certain = [each for each in found if each.certain]
    if certain and repair and store is not None:
        again = store.repair()
        rest = f"the same run computes {again} cells again" if again else "it is whole again"
        return Finding(thing, REPAIRED, rest)
    if certain:
        return Finding(thing, DAMAGED, in_short(certain))
    done = open_array(thing.path, "done")
    if done is not None and not has_checksums(done):
        gaps = f"{len(found)} files are not there: all their values are NaN, or they were lost"
        return Finding(thing, UNCHECKED, gaps if found else "")
    return Finding(thing, OK)


def check_written(path: Path) -> str:
    """What is wrong with a file by what was recorded of it when it was written."""
    known = record_of(path) is not None
    return "was changed after rarefy wrote it" if known and not is_intact(path) else ""


def _check_network(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:  # (PyTorch itself does not look at the checksums)
            if (entry := archive.testzip()) is not None:
                return f"{entry} is not as it was written"
        about = read_tensors(path)
        missing = [
            name
            for name in ("state_dict", "channels", "size", "classes", "network")
            if name not in about
        ]
    except Exception as error:  # whatever meets the wrong bytes first
        return f"cannot be read ({type(error).__name__})"
    return f"{NOT_OURS}: has no {', '.join(missing)}" if missing else ""
