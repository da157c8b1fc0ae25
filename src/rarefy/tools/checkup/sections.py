"""What a part of a check-up found: for a page, for the ranking, and kept on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rarefy.core.reading import read_json
from rarefy.core.writing import write_whole

DONE, SKIPPED, FAILED = "done", "skipped", "failed"


@dataclass(frozen=True)
class Rows:
    """A small table of texts; ``samples``: the row of the data that each line is about, if any."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    samples: tuple[int, ...] = ()


@dataclass(frozen=True)
class Section:
    """One part: ``answer`` is its sentence (or why it was skipped or failed), ``numbers`` what the
    ranking reads."""

    part: str
    title: str
    answer: str
    status: str = DONE
    tables: tuple[Rows, ...] = ()
    notes: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    """What looks closer."""
    seconds: float = 0.0


def keep_section(path: Path, key: str, section: Section) -> None:
    write_whole(path, json.dumps({"key": key, "section": asdict(section)}, indent=1) + "\n")


def kept_section(path: Path, key: str) -> Section | None:
    """What was found before with the same data and options; a file that cannot be used is passed
    over, its part is run again."""
    try:
        found = read_json(path)
        if found["key"] != key:
            return None
        told = dict(found["section"])
        told["tables"] = tuple(_rows(one) for one in told["tables"])
        return Section(**{**told, "notes": tuple(told["notes"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _rows(told: Mapping[str, Any]) -> Rows:
    lines: Sequence[Sequence[str]] = told["lines"]
    return Rows(
        told["title"],
        tuple(told["columns"]),
        tuple(tuple(line) for line in lines),
        tuple(told["samples"]),
    )
