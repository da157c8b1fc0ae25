"""What a person sees in a folder: all but rarefy's own records of what it wrote there."""

from __future__ import annotations

from pathlib import Path

from rarefy.core.writing import RECORDS


def seen_in(folder: Path) -> list[Path]:
    """Files and folders, sorted; leftovers of an interrupted writing are among them, but not the
    options of a call beside its output."""

    def beside(path: Path) -> bool:
        return path.suffix == ".toml" and path.with_suffix("").exists()

    return sorted(one for one in folder.iterdir() if one.name != RECORDS and not beside(one))
