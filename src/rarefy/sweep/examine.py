"""What lies at a path that is to be a store: nothing, a store, or something to leave alone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rarefy.core.errors import UsageError
from rarefy.core.place import Place, Remote, Unreachable
from rarefy.sweep.making import is_being_made
from rarefy.sweep.spec import spec_kind

MARK = "rarefy_store"
FIELDS = {"spec": dict, "scale": str, "provenance": dict, "choices": dict, "inputs": dict}


def examine(path: Place, overwrite: bool = False, named: str = "out") -> dict[str, Any] | None:
    """The attributes of the store at ``path``; None when there is nothing yet, or what was left
    when one was being made at an address. Whatever else is there is refused, and never touched;
    ``named``: the argument that a complaint is about."""
    try:
        if is_being_made(path) or (isinstance(path, Remote) and not path.exists()):
            return None
        return _examine(path, overwrite, named)
    except Unreachable as error:
        raise UsageError(f"cannot read store {path}: {error}") from error


def _examine(path: Place, overwrite: bool, named: str) -> dict[str, Any] | None:
    if isinstance(path, Path) and not path.exists():
        existing = next(parent for parent in path.absolute().parents if parent.exists())
        if not existing.is_dir():
            raise UsageError(f"{named}={str(path)!r}: {existing} is a file, not a folder")
        return None
    if not path.is_dir():
        raise UsageError(f"{named}={str(path)!r} is a file; a store is a folder")
    if not any(path.iterdir()):
        return None
    attributes: dict[str, Any] = {}
    try:
        described = json.loads((path / "zarr.json").read_text("utf-8"))
        attributes = described["attributes"]
        ours, wrong = bool(attributes[MARK]), _wrong(described)
    except Unreachable:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        names = ("done", "run_seconds", "key")
        ours, wrong = sum((path / name / "zarr.json").exists() for name in names) > 1, "unreadable"
    if not ours:
        raise UsageError(
            f"{named}={str(path)!r} is a folder that is not a rarefy store; left untouched"
        )
    if wrong and not overwrite:
        raise UsageError(
            f"store {path} is damaged (zarr.json: {wrong}), what it was made with is not known; "
            "use --overwrite or another --out"
        )
    return {} if wrong else dict(attributes)


def hash_of(attributes: dict[str, Any]) -> str:
    """Of what a store says of itself; fields that others add do not count."""
    told = {name: attributes.get(name) for name in FIELDS}
    return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()


def _wrong(described: dict[str, Any]) -> str:
    """The first field that is not of its kind."""
    attributes = described["attributes"]
    if (described.get("node_type"), described.get("zarr_format")) != ("group", 3):
        return "no Zarr group"
    if wrong := spec_kind(attributes.get("spec")):
        return wrong
    for name, kind in FIELDS.items():
        if not isinstance(attributes.get(name, kind()), kind):
            return f"{name} is {attributes[name]!r}"
    for device, chosen in attributes.get("choices", {}).items():
        for name, least in (("batch", 1), ("threads", 1), ("compiled", False)):
            value = chosen.get(name, least) if isinstance(chosen, dict) else None
            if type(value) is not type(least) or value < least:
                return f"choices.{device}.{name} is {value!r}"
    if attributes.get("hash", hash_of(attributes)) != hash_of(attributes):
        return "not as it was written"
    return ""
