"""The gallery: scores of a labelled set as one HTML page to look at, pick from and pass on.

One file that opens offline. It shows at most 2,000 samples, and says how many of how many: then it
stays below 10 MB, whatever the size of the set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy import __version__
from rarefy.core.errors import UsageError, bad_value
from rarefy.core.writing import write_output
from rarefy.report.gallery.cards import Cells, class_cards, triage_cards
from rarefy.report.gallery.choice import MISLABELLED, MOST_SAMPLES, Choice, choose
from rarefy.report.gallery.columns import Columns, Features
from rarefy.report.gallery.numbers import as_json, payload
from rarefy.report.gallery.pictures import Pictures, Thumbnail
from rarefy.report.gallery.table import Rows, plain_text, read_table
from rarefy.report.templating import template
from rarefy.tools.clean.picks import FORMAT

NEAREST = 5
"""Neighbours of a sample, where the page has room for them."""
SCOREBOARD = "docs/scoreboard.md"
"""Where a reader finds what the score can and cannot detect, beside its baselines."""
Neighbours = Callable[[Sequence[int]], Mapping[int, Sequence[int]]]


class SampleMap(Protocol):
    """Where samples lie on a map: (k, 2) by row, and in words what the map is."""

    @property
    def words(self) -> str: ...

    def __call__(self, rows: Sequence[int], /) -> NDArray[np.float64]: ...


@dataclass(frozen=True)
class GalleryReport:
    """What was written: ``shown`` of ``samples`` samples in strips of ``per_class``, with so many
    ``pictures``; those of ``unreadable`` rows could not be read."""

    path: Path
    bytes: int
    samples: int
    shown: int
    per_class: int
    classes: int
    classes_shown: int
    undefined: int
    pictures: int
    unreadable: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.shown:,} of {self.samples:,} samples, {self.classes_shown:,} of "
            f"{self.classes:,} classes, {self.bytes / 1e6:.1f} MB"
        )


def write_gallery(
    path: Path | str,
    table: pd.DataFrame,
    *,
    title: str,
    classes: Sequence[str],
    thumbnail: Thumbnail | None = None,
    positions: SampleMap | None = None,
    neighbours: Neighbours | None = None,
    facts: Sequence[tuple[str, object]] = (),
    columns: Columns | None = None,
    origin: Mapping[str, Any] | None = None,
    write: Callable[[Path, bytes], None] = write_output,
) -> GalleryReport:
    """Write the page of a score table. ``thumbnail`` (uint8, (height, width[, channels])) or else
    ``columns`` (names and numbers of a sample) is asked by position in the table; ``neighbours``
    gives the nearest typical samples of many positions at once, ``positions`` where samples lie on
    a map. ``origin``: which ``data`` these are and how they are ``read``, for who applies the
    decisions that are made on the page (``rarefy.tools.clean.picks``)."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"path={str(target)!r}: is a folder; name a file such as gallery.html")
    if not len(table):
        raise bad_value("table", "0 rows", "must have at least one sample")
    samples = read_table(table, classes)
    # numbers of an image are its pixels: nobody reads those beside it
    features = Features(columns, samples) if columns and thumbnail is None else None
    pictures, choice = Pictures(thumbnail), choose(samples)
    rows, near = _with_neighbours(choice, neighbours, len(samples))
    addresses = [pictures.address(row) for row in rows.tolist()]
    cells = Cells(samples, rows, addresses, features)
    placed = None if positions is None else positions(rows.tolist())
    told = payload(samples, choice, rows, near, features, placed)
    told["pictures"] = [int(bool(address)) for address in addresses]
    told["origin"] = {"format": FORMAT, "data": "", "read": {}, **(origin or {})}
    page = template("gallery.html.j2", count=lambda value: f"{value:,}").render(
        title=plain_text(title),
        facts=[
            (plain_text(name), plain_text(value))
            for name, value in facts
            if name not in ("samples", "classes")  # the page says so already
        ],
        samples=len(samples),
        classes=samples.classes,
        shown=len(rows),
        strip=choice.ends["influence"],
        cards=class_cards(samples, choice, cells),
        absent=[samples.classes[number] for number in np.flatnonzero(samples.sizes() == 0)],
        triage=triage_cards(samples, choice, cells),
        undefined=cells.of(choice.undefined),
        undefined_size=len(samples.undefined),
        addresses=[(place, address) for place, address in enumerate(addresses) if address],
        side=pictures.side(),
        large=pictures.large(),
        pixels=pictures.enlarged,
        unreadable=len(pictures.unreadable),
        map_words="" if positions is None else positions.words,
        mislabelled=MISLABELLED,
        scoreboard=SCOREBOARD,
        numbers=as_json(told),
        version=__version__,
    )
    content = page.encode()
    write(target, content)
    return GalleryReport(
        path=target,
        bytes=len(content),
        samples=len(samples),
        shown=len(rows),
        per_class=choice.ends["influence"],
        classes=len(samples.classes),
        classes_shown=len(choice.classes),
        undefined=len(samples.undefined),
        pictures=sum(map(bool, addresses)),
        unreadable=tuple(sorted(pictures.unreadable)),
    )


def _with_neighbours(
    choice: Choice, neighbours: Neighbours | None, samples: int
) -> tuple[Rows, dict[int, list[int]]]:
    """The shown rows, and the neighbours of each that has room for them. The flagged are served
    first, then the highest scores."""
    rows = choice.rows
    if neighbours is None:
        return rows, {}
    nearest, present = neighbours(rows.tolist()), set(rows.tolist())
    first = [*choice.triage.values(), *choice.highest["influence"].values(), rows]
    kept: dict[int, list[int]] = {}
    for row in dict.fromkeys(np.concatenate(first).tolist()):
        others = [int(other) for other in nearest.get(row, ())][:NEAREST]
        for other in others:
            if not 0 <= other < samples:
                allowed = f"must give rows from 0 to {samples - 1}"
                raise bad_value("neighbours", f"{other} for row {row}", allowed)
        if others and len(present.union(others)) <= MOST_SAMPLES:
            present.update(others)
            kept[row] = others
    return np.array(sorted(present), dtype=np.int64), kept
