"""What a person sees in a folder: all but rarefy's own records of what it wrote there."""

from __future__ import annotations

from pathlib import Path

from rarefy.core.writing import RECORDS


def seen_in(folder: Path) -> list[Path]:
    """Files and folders, sorted; leftovers of an interrupted writing are among them."""
    return sorted(path for path in folder.iterdir() if path.name != RECORDS)
