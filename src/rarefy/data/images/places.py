"""Where data sets lie: the folder that was named, ``RAREFY_DATA``, or the user's cache."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.place import user_cache

SETTING = "RAREFY_DATA"


def data_folder(folder: Path | str | None = None) -> Path:
    """The folder that holds the sets, which may not exist yet."""
    for what, value in (("folder", folder), (SETTING, os.environ.get(SETTING))):
        if value is not None and str(value):
            chosen = _expanded(Path(value))
            if chosen.exists() and not chosen.is_dir():
                raise bad_value(what, str(value), "must be a folder, this is a file")
            return chosen
    return _expanded(user_cache() / "rarefy" / "data")


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise UsageError(f"no home folder to look for {path}; set {SETTING} to a folder") from None


def absence_error(name: str, looked_for: str, folder: Path, by_hand: str) -> UsageError:
    """The one line about a set that is not there: where it was looked for and what to do."""
    option = "" if folder == data_folder() else f" --data-folder {shlex.quote(str(folder))}"
    return UsageError(
        f"{name} is not in {folder} (looked for {looked_for}); "
        f"fetch it with: rarefy data fetch {name}{option}; without a network, {by_hand}; "
        f"another folder is chosen with --data-folder or {SETTING}"
    )
