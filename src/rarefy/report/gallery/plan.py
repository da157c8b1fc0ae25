"""How much fits onto the page: how long the strips are, and which classes are shown.

A first plan is judged by a few dozen pictures; then the page itself is measured, and plans get
smaller until it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rarefy.report.gallery.choice import MOST, Choice, Room
from rarefy.report.gallery.pictures import Pictures
from rarefy.report.gallery.table import Rows

_ENOUGH = (12, 8, 4, 0)  # with strips so long, pictures need not be worse than each quality
_BARE, _A_CLASS, _A_SAMPLE = 80_000, 1_100, 480  # bytes, roughly; the page is measured


@dataclass(frozen=True)
class Plan:
    """What goes onto the page; ``classes`` by size, the largest first."""

    room: Room
    classes: tuple[int, ...]

    def smaller(self, excess: float) -> Plan | None:
        """The next plan, where this one's page is ``excess`` times too large: shorter strips, then
        only the largest classes."""
        strip, classes = self.room.strip, len(self.classes)
        if strip > 1:
            return replace(self, room=Room(max(1, min(strip - 1, int(strip / excess)))))
        if classes > 1:
            kept = max(1, min(classes - 1, int(classes / excess)))
            return replace(self, classes=self.classes[:kept])
        return None


def first_plan(choice: Choice, pictures: Pictures, limit: int, neighbours: bool) -> Plan:
    """The largest plan that should fit; sets how good the pictures are."""
    present, rows = choice.classes, choice.rows(Room(MOST))
    some = rows[:: max(1, len(rows) // 48)]
    strip, each, left = 0, 0.0, limit - _BARE
    for pictures.quality, enough in enumerate(_ENOUGH):
        each = _A_SAMPLE + float(np.mean([len(pictures.address(int(row))) for row in some]))
        rows_left = (left - _A_CLASS * len(present)) / each
        strip = longest(choice, present, rows_left, neighbours)
        if strip >= enough:
            break
    if not strip:  # not even one sample in each strip of every class
        return Plan(Room(1), present[: max(1, int(left / (_A_CLASS + 3 * each)))])
    return Plan(Room(strip), present)


def longest(
    choice: Choice, classes: Sequence[int], rows: float, neighbours: bool, below: int = MOST + 1
) -> int:
    """The length below ``below`` at which strips show at most so many rows, neighbours among them;
    0 where none does."""
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        share = 1 + neighbours * Room(middle).extra
        if share * len(choice.rows(Room(middle), classes)) <= rows:
            low = middle
        else:
            high = middle
    return low


def rows_for(limit: int, plan: Plan, rows: int, size: int) -> float:
    """How many rows so many bytes hold, when a page of this plan with ``rows`` has ``size``."""
    fixed = min(_BARE + _A_CLASS * len(plan.classes), size - 1)
    return rows * (limit - fixed) / (size - fixed)


def with_neighbours(
    plan: Plan, choice: Choice, nearest: Callable[[Rows], Mapping[int, Sequence[int]]]
) -> tuple[Rows, dict[int, list[int]]]:
    """The shown rows, and the neighbours of each that has room for them. Rows that are shown only
    as neighbours are a limited share; the flagged are served first, then the highest scores."""
    chosen = choice.rows(plan.room, plan.classes)
    near, present = nearest(chosen), set(chosen.tolist())
    spare = int(plan.room.extra * len(chosen))
    strips = [choice.highest["influence"][number][: plan.room.strip] for number in plan.classes]
    first = [row for word in choice.triage for row in choice.flagged(word, plan.room).tolist()]
    first += [int(strip[place]) for place in range(MOST) for strip in strips if place < len(strip)]
    kept: dict[int, list[int]] = {}
    for row in dict.fromkeys([*first, *chosen.tolist()]):
        others = list(near.get(row, ()))[: plan.room.neighbours]
        fresh = set(others) - present
        if others and len(fresh) <= spare:
            spare -= len(fresh)
            present |= fresh
            kept[row] = others
    return np.array(sorted(present), dtype=np.int64), kept
