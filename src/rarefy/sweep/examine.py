"""What lies at a path that is to be a store: nothing, a store, or something to leave alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rarefy.core.errors import UsageError

MARK = "rarefy_store"


def examine(path: Path, overwrite: bool = False) -> dict[str, Any] | None:
    """The attributes of the store at ``path``; None when there is nothing yet. Whatever else is
    there is refused, and never touched."""
    if not path.exists():
        existing = next(parent for parent in path.absolute().parents if parent.exists())
        if not existing.is_dir():
            raise UsageError(f"out={str(path)!r}: {existing} is a file, not a folder")
        return None
    if not path.is_dir():
        raise UsageError(f"out={str(path)!r} is a file; a store is a folder")
    if not any(path.iterdir()):
        return None
    try:
        attributes = json.loads((path / "zarr.json").read_text("utf-8"))["attributes"]
        if attributes[MARK] and attributes["spec"]["parameters"]:
            return dict(attributes)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    if all((path / name / "zarr.json").exists() for name in ("done", "run_seconds", "key")):
        if overwrite:
            return {}
        raise UsageError(f"store {path} is damaged (zarr.json); use --overwrite or another --out")
    raise UsageError(f"out={str(path)!r} is a folder that is not a rarefy store; left untouched")
