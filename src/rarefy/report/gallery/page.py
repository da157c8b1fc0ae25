"""The gallery: scores of a labelled set as one HTML page to look at, pick from and pass on.

One file that opens offline. However many samples there are, it stays below a number of bytes:
fewer are shown per class until it does, and the page says how many of how many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy import __version__
from rarefy.core.errors import UsageError, bad_value
from rarefy.core.writing import write_output
from rarefy.report.gallery.cards import Cells, class_cards, triage_cards
from rarefy.report.gallery.choice import MISLABELLED, MOST, Choice, Room, choose
from rarefy.report.gallery.columns import Columns, Features
from rarefy.report.gallery.numbers import as_json, payload
from rarefy.report.gallery.pictures import Pictures, Thumbnail
from rarefy.report.gallery.plan import Plan, first_plan, longest, rows_for, with_neighbours
from rarefy.report.gallery.table import Rows, ScoreTable, plain_text, read_table
from rarefy.report.templating import template
from rarefy.tools.clean.picks import FORMAT

MOST_BYTES = 10_000_000
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


@dataclass(frozen=True)
class _Content:
    """What stays the same while the page is made to fit."""

    title: str
    facts: Sequence[tuple[str, object]]
    samples: ScoreTable
    choice: Choice
    pictures: Pictures
    features: Features | None
    positions: SampleMap | None
    origin: Mapping[str, Any]


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
    limit: int = MOST_BYTES,
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
    origin = {"data": "", "read": {}, **(origin or {})}
    content = _Content(title, facts, samples, choice, pictures, features, positions, origin)
    plan = first_plan(choice, pictures, limit, neighbours is not None)
    plan, rows, page = _fitted(content, plan, _Nearest(neighbours, len(samples)), limit)
    write(target, page)
    return GalleryReport(
        path=target,
        bytes=len(page),
        samples=len(samples),
        shown=len(rows),
        per_class=plan.room.strip,
        classes=len(samples.classes),
        classes_shown=len(plan.classes),
        undefined=len(samples.undefined),
        pictures=sum(bool(pictures.address(int(row))) for row in rows),
        unreadable=tuple(sorted(pictures.unreadable)),
    )


@dataclass
class _Nearest:
    """Asks the caller for the neighbours of each row once."""

    neighbours: Neighbours | None
    samples: int
    known: dict[int, Sequence[int]] = field(default_factory=dict)

    def __call__(self, rows: Rows) -> dict[int, Sequence[int]]:
        asked = [row for row in rows.tolist() if row not in self.known]
        if self.neighbours is not None and asked:
            found = self.neighbours(asked)
            for row in asked:
                self.known[row] = [self._checked(int(other), row) for other in found.get(row, ())]
        return self.known

    def _checked(self, other: int, row: int) -> int:
        if not 0 <= other < self.samples:
            allowed = f"must give rows from 0 to {self.samples - 1}"
            raise bad_value("neighbours", f"{other} for row {row}", allowed)
        return other


def _fitted(
    content: _Content, plan: Plan, nearest: _Nearest, limit: int
) -> tuple[Plan, Rows, bytes]:
    """The largest page that is small enough, sought from this plan up or down."""
    best: tuple[Plan, Rows, bytes] | None = None
    too_long = MOST + 1
    while True:
        rows, kept = with_neighbours(plan, content.choice, nearest)
        page = _filled(content, plan, rows, kept).encode()
        if len(page) <= limit:
            best = plan, rows, page
        else:
            too_long = min(too_long, plan.room.strip)
        asked = nearest.neighbours is not None
        if best is None:
            smaller = plan.smaller(len(page) / limit)
            if smaller is None:
                allowed = f"must be at least {len(page)} bytes for this page"
                raise bad_value("limit", limit, allowed)
            # strips that are longer than classes are large can be cut without any effect
            room = rows_for(limit, plan, len(rows), len(page))
            fitting = longest(content.choice, plan.classes, room, asked, too_long)
            plan = replace(smaller, room=Room(max(1, min(fitting, smaller.room.strip))))
            continue
        plan, rows, page = best
        room = rows_for(limit, plan, len(rows), len(page))
        longer = longest(content.choice, plan.classes, room, asked, too_long)
        if longer <= plan.room.strip:
            return best
        plan = replace(plan, room=Room(longer))


def _filled(content: _Content, plan: Plan, rows: Rows, near: Mapping[int, Sequence[int]]) -> str:
    """The template with everything in it."""
    samples, choice, pictures = content.samples, content.choice, content.pictures
    addresses = [pictures.address(int(row)) for row in rows]
    features, where = content.features, content.positions
    cells = Cells(samples, rows, addresses, features)
    placed = None if where is None else np.asarray(where(rows.tolist()), dtype=np.float64)
    told = payload(samples, choice, plan.room, plan.classes, rows, near, features, placed)
    told["pictures"] = [int(bool(address)) for address in addresses]
    told["origin"] = {"format": FORMAT, **content.origin}
    sizes = samples.sizes()
    return template("gallery.html.j2", count=lambda value: f"{value:,}").render(
        title=plain_text(content.title),
        facts=[
            (plain_text(name), plain_text(value))
            for name, value in content.facts
            if name not in ("samples", "classes")  # the page says so already
        ],
        samples=len(samples),
        classes=samples.classes,
        sizes=sizes.tolist(),
        shown=len(rows),
        strip=plan.room.strip,
        cards=class_cards(samples, choice, plan.room, plan.classes, cells),
        absent=[samples.classes[number] for number in np.flatnonzero(sizes == 0)],
        triage=triage_cards(samples, choice, plan.room, cells),
        undefined=cells.of(choice.without_score(plan.room)),
        undefined_size=len(samples.undefined),
        addresses=[(place, address) for place, address in enumerate(addresses) if address],
        side=pictures.side(),
        large=pictures.large(),
        named=bool(any(samples.names)),
        pixels=pictures.enlarged,
        unreadable=len(pictures.unreadable),
        map_words="" if where is None else where.words,
        mislabelled=MISLABELLED,
        scoreboard=SCOREBOARD,
        numbers=as_json(told),
        version=__version__,
    )
