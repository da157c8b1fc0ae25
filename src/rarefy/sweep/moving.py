"""A run that moves to another machine: its store and its trainings under way, as a few small files.

A pack is a folder: parts of one compressed archive, none larger than asked for, and a manifest with
the size and hash of each. Weights and momentum of trainings under way go in bf16
(``rarefy.train.checkpoints``); all else arrives bit for bit, also what a run has beside its store:
its saved networks and the race before it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from rarefy.core.errors import RunError, UsageError, bad_value
from rarefy.core.place import refuse_address
from rarefy.core.reading import read_json, read_tensors
from rarefy.core.writing import RECORDS, check_place, file_hash, flush, new_folder, record_of
from rarefy.data.images.unpack_limit import LimitedGzip
from rarefy.sweep.chunks import find_damage, flush_all, in_short, in_words, open_array
from rarefy.sweep.examine import examine
from rarefy.sweep.lock import Lock
from rarefy.sweep.making import along, beside
from rarefy.train.checkpoints import made_light, made_whole

PART_MB = 15.0
MANIFEST, FORMAT = "manifest.json", 1
STORE, SCRATCH = "store", "scratch"
ALONG = ("networks", "race")
"""The folders in the archive; the last two where they are beside the store."""
MB = 1_000_000


class Packed(NamedTuple):
    """What is in a pack."""

    study: str
    cells: int
    done: int
    under_way: int
    """Files of trainings that are not finished."""
    parts: tuple[dict[str, Any], ...]
    """Name, bytes and hash of each."""
    along: tuple[str, ...] = ()
    """Of ``ALONG``, what was there."""

    @property
    def megabytes(self) -> float:
        return sum(part["bytes"] for part in self.parts) / MB


def pack(store: Path | str, folder: Path | str, part_mb: float = PART_MB) -> Packed:
    """Write a store and its trainings under way into a new folder, small enough to move.

    Arguments:
        store: the store of a run that is not going on right now.
        folder: does not exist yet.
        part_mb: no part is larger, in millions of bytes.

    Returns:
        What is in it.

    Example:
        >>> pack("runs/pretrain-digits", "moved")
        >>> unpack("moved", "runs/pretrain-digits")  # elsewhere; then the same command goes on
    """
    path, folder = _named(store), Path(folder)
    if not 1 <= part_mb * MB < 2**62:
        raise bad_value("part_mb", part_mb, "must be more than 0 (millions of bytes), and finite")
    attributes = examine(path, named="store")
    if attributes is None:
        raise UsageError(f"no store at {path}")
    check_place(folder, "folder")
    if os.path.lexists(folder):
        raise bad_value("folder", str(folder), "is there already; name a new one")
    with _locked(path):
        _refuse_damage(path)
        done = open_array(path, "done")
        finished = np.asarray([] if done is None else done[:], dtype=bool)
        with new_folder(folder) as partial:
            taken = tuple(what for what in ALONG if _is_there(path, what))
            under_way = _archive(path, taken, partial / "whole")
            parts = tuple(_split(partial / "whole", int(part_mb * MB)))
            spec = attributes["spec"]
            cells = len(finished), int(finished.sum())
            found = Packed(spec["study"], *cells, under_way, parts, taken)
            told = {"rarefy_pack": FORMAT, "store": path.name, **found._asdict()}
            text = json.dumps({**told, "hash": _hash_of(told)}, indent=1)
            (partial / MANIFEST).write_text(text + "\n", "utf-8")
            flush_all(partial.iterdir())
    return found


def unpack(folder: Path | str, store: Path | str, overwrite: bool = False) -> Packed:
    """Put a pack back: the command that made the store goes on with it.

    Arguments:
        folder: as ``pack`` wrote it, with all its parts.
        store: where the store is to be.
        overwrite: replace a store that is there.

    Returns:
        What was in it. A pack that is not whole is refused, and nothing is written.

    Example:
        >>> unpack("moved", "runs/pretrain-digits")
    """
    folder, path = Path(folder), _named(store)
    found = read_manifest(folder)
    for part in found.parts:
        _refuse_other(folder / part["name"], part)
    check_place(path, "store")
    if examine(path, overwrite) is not None and not overwrite:
        raise bad_value("store", str(path), "is there already; pass --overwrite, or name another")
    with _locked(path):
        places = {STORE: path, SCRATCH: beside(path, SCRATCH)}
        for what in found.along:
            places[what] = along(path, what)
            if places[what].exists() and not (overwrite and _is_there(path, what, alone=True)):
                why = "move it away" if overwrite else "pass --overwrite, or name another"
                raise bad_value("store", str(path), f"{places[what]} is there already; {why}")
        building = beside(path, "building")
        shutil.rmtree(building, ignore_errors=True)
        try:
            building.mkdir()
            _extract(folder, found, building)
            flush_all([building, *building.rglob("*")])
            _take_places(building, places, beside(path, "old"))
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return found


def _take_places(building: Path, places: dict[str, Path], old: Path) -> None:
    """All at once or nothing: what is there is set aside, and put back if anything fails. The store
    is the first to go and the last to come: where there is one, nothing is half done."""
    if places[STORE].exists() and old.exists():  # of one that was killed when all was done
        shutil.rmtree(old)
    old.mkdir(exist_ok=True)
    placed = []
    try:
        for what, place in places.items():
            if (old / what).exists():  # killed on the way: this is half of what was to come
                shutil.rmtree(place, ignore_errors=True)
            elif place.exists():
                place.rename(old / what)
        for what, place in reversed(places.items()):
            placed.append(place)
            (building / what).rename(place)
        flush(places[STORE].parent)
    except BaseException:
        for place in placed:
            shutil.rmtree(place, ignore_errors=True)
        for what, place in reversed(places.items()):
            if (old / what).exists():
                (old / what).rename(place)
        raise
    finally:
        if places[STORE].exists() or not any(old.iterdir()):
            shutil.rmtree(old, ignore_errors=True)


def _is_there(path: Path, what: str, alone: bool = False) -> bool:
    """Whether a folder beside a store is of rarefy; ``alone``: with nothing else in it."""
    place = along(path, what)
    if what == "networks":
        files = [file for file in place.glob("*") if alone and file.name != RECORDS]
        return (place / RECORDS).is_dir() and all(record_of(file) is not None for file in files)
    try:
        return examine(place) is not None
    except UsageError:
        return False


def read_manifest(folder: Path) -> Packed:
    """What a pack says of itself; refused if that is not whole."""
    if not (folder / MANIFEST).is_file():
        raise bad_value("folder", str(folder), f"is no pack: it has no {MANIFEST}")
    try:
        told = read_json(folder / MANIFEST)
        whole = told["rarefy_pack"] == FORMAT and told.pop("hash") == _hash_of(told)
        found = Packed(**{name: told[name] for name in Packed._fields if name in told})
        names = {part["name"] for part in found.parts}
        whole = whole and all(Path(name).name == name for name in names)
        whole = whole and {*found.along} <= {*ALONG}
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise bad_value("folder", str(folder), f"{MANIFEST} is damaged; move the pack again")
    foreign = sorted({path.name for path in folder.glob("part-*")} - names)
    if foreign:
        raise bad_value("folder", str(folder), f"{foreign[0]} is not of this pack; remove it")
    return found


def _refuse_other(path: Path, part: dict[str, Any]) -> None:
    what = ""
    if not path.is_file():
        what = "is missing"
    elif path.stat().st_size != part["bytes"]:
        what = f"has {path.stat().st_size} bytes, not {part['bytes']}"
    elif file_hash(path) != part["hash"]:
        what = "is damaged, or of another pack"
    if what:
        raise bad_value("folder", str(path.parent), f"{path.name} {what}; move it again")


def _archive(path: Path, taken: tuple[str, ...], target: Path) -> int:
    """Write all that belongs to a store; how many files of trainings there were."""
    scratch = beside(path, SCRATCH)
    files = sorted(file for file in scratch.rglob("*") if file.is_file())
    files = [file for file in files if file.suffix != ".partial"]
    with tarfile.open(target, "w:gz", compresslevel=1) as archive:
        archive.add(path, STORE, filter=_nobody)
        for what in taken:
            archive.add(along(path, what), what, filter=_nobody)
        for file in files:
            content = file.read_bytes() if file.suffix != ".pt" else _light(file)
            info = tarfile.TarInfo(f"{SCRATCH}/{file.relative_to(scratch).as_posix()}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return len(files)


def _nobody(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Whose files they were is nobody's business; a kill may have left half of one."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return None if info.name.endswith(".partial") else info


def _light(file: Path) -> bytes:
    try:
        state = read_tensors(file)
    except Exception as error:  # wrong bytes fail in whatever meets them first
        raise RunError(f"checkpoint {file} is damaged; remove it to pack the rest") from error
    buffer = io.BytesIO()
    torch.save(made_light(state), buffer)
    return buffer.getvalue()


def _split(whole: Path, size: int) -> Iterator[dict[str, Any]]:
    with open(whole, "rb") as archive:
        number = 1
        while content := archive.read(size):
            part = whole.with_name(f"part-{number:03d}")
            part.write_bytes(content)
            yield {"name": part.name, "bytes": len(content), "hash": file_hash(part)}
            number += 1
    whole.unlink()


def _extract(folder: Path, found: Packed, building: Path) -> None:
    whole = building / "whole"
    with open(whole, "wb") as joined:
        for part in found.parts:
            with open(folder / part["name"], "rb") as opened:
                shutil.copyfileobj(opened, joined)
    (building / SCRATCH).mkdir()
    try:
        with LimitedGzip(whole) as content, tarfile.open(fileobj=content, mode="r|") as archive:
            archive.extractall(building, filter="data")  # (nothing outside, no links out of it)
        for file in (building / SCRATCH).rglob("*.pt"):
            state = read_tensors(file)
            torch.save(made_whole(state), file)
        good = examine(building / STORE) is not None
        good = good and all((building / what).is_dir() for what in found.along)
    except Exception as error:  # made by somebody else, whatever its hashes say
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise bad_value("folder", str(folder), f"holds no store of rarefy ({why})") from error
    if not good:
        raise bad_value("folder", str(folder), "holds no store of rarefy")
    whole.unlink()
    if damage := [each for each in find_damage(building / STORE) if each.certain]:
        raise bad_value("folder", str(folder), f"holds a damaged store ({in_short(damage)})")


def _refuse_damage(path: Path) -> None:
    damage = [each for each in find_damage(path) if each.certain]
    if damage:
        raise RunError(in_words(path, damage))


def _hash_of(told: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()


def _named(path: Path | str) -> Path:
    refuse_address(Path(path), "store")
    return Path(path) if Path(path).name else Path(path).resolve()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = Lock(beside(path, "lock"), path)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
