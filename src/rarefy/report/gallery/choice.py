"""Which samples a gallery shows: the flagged, the ends of each class, some at random.

Everything is chosen once, at the most generous size; a smaller page takes the first of each list,
so that what it shows is always part of what a larger one would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy.report.gallery.table import MEASURES, Rows, ScoreTable

MOST = 24
"""Samples of one strip (highest, lowest, random) on the most generous page."""
MOST_CLASSES = 5_000
"""So many classes are chosen from, the largest: a page has room for fewer."""
MISLABELLED = "maybe mislabelled"
"""The label of ``rarefy.tools.influence.triage`` for samples whose neighbours have other labels."""
_TRIAGE, _UNDEFINED = 16, 8  # times the length of a strip


@dataclass(frozen=True)
class Room:
    """How much is shown when a strip has ``strip`` samples; everything shrinks with it."""

    strip: int

    @property
    def others(self) -> int:
        """Highest and lowest by a measure other than the influence."""
        return self.strip // 2 if self.strip >= 4 else 0

    @property
    def neighbours(self) -> int:
        return min(5, self.strip // 2)

    @property
    def extra(self) -> float:
        """Rows shown only as neighbours, as a share of the others: less where room is scarce."""
        return 1.0 if self.strip >= 12 else 0.5 if self.strip >= 8 else 0.25

    def ends(self, measure: str) -> int:
        return self.strip if measure == "influence" else self.others


@dataclass(frozen=True)
class Choice:
    """Rows in the order in which they count: for each of ``classes`` (by size, the largest first)
    by measure and at random; and for the whole table by triage label and without a score."""

    classes: tuple[int, ...]
    highest: dict[str, dict[int, Rows]]
    lowest: dict[str, dict[int, Rows]]
    random: dict[int, Rows]
    triage: dict[str, Rows]
    undefined: Rows

    def rows(self, room: Room, classes: Iterable[int] | None = None) -> Rows:
        """All that is shown, each once, in order."""
        chosen = list(self._parts(room, classes))
        return np.unique(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.int64)

    def _parts(self, room: Room, classes: Iterable[int] | None) -> Iterator[Rows]:
        for number in self.classes if classes is None else classes:
            for ends in (self.highest, self.lowest):
                for measure, lists in ends.items():
                    yield lists[number][: room.ends(measure)]
            yield self.random[number][: room.strip]
        for flagged in self.triage.values():
            yield flagged[: room.strip * _TRIAGE]
        yield self.undefined[: room.strip * _UNDEFINED]

    def flagged(self, word: str, room: Room) -> Rows:
        return self.triage[word][: room.strip * _TRIAGE]

    def without_score(self, room: Room) -> Rows:
        return self.undefined[: room.strip * _UNDEFINED]


def choose(samples: ScoreTable, most: int = MOST) -> Choice:
    """Choose for strips of at most ``most`` samples."""
    room, sizes, every = Room(most), samples.sizes(), samples.members()
    present = min(MOST_CLASSES, int((sizes > 0).sum()))
    classes = tuple(np.argsort(-sizes, kind="stable")[:present].tolist())
    members = {number: every[number] for number in classes}
    measures = [name for name in MEASURES if name in samples.numbers]
    highest: dict[str, dict[int, Rows]] = {name: {} for name in measures}
    lowest: dict[str, dict[int, Rows]] = {name: {} for name in measures}
    for name in measures:
        for number, rows in members.items():
            known = rows[np.isfinite(samples.numbers[name][rows])]
            ordered = known[np.argsort(samples.numbers[name][known], kind="stable")]
            lowest[name][number] = ordered[: room.ends(name)]
            # of equal values the earlier one comes first, here too
            ordered = known[np.argsort(-samples.numbers[name][known], kind="stable")]
            highest[name][number] = ordered[: room.ends(name)]
    return Choice(
        classes=classes,
        highest=highest,
        lowest=lowest,
        random={number: _at_random(rows, samples.ids, most) for number, rows in members.items()},
        triage=_by_triage(samples, room),
        undefined=samples.undefined[: room.strip * _UNDEFINED],
    )


def _at_random(rows: Rows, ids: NDArray[np.object_], most: int) -> Rows:
    """By a hash of the id: the same samples for the same data, in whatever order it comes."""
    if not len(rows):
        return rows
    keys = pd.util.hash_array(ids[rows], categorize=False)
    return rows[np.argsort(keys, kind="stable")[:most]]


def sorted_by(word: str, samples: ScoreTable) -> str:
    """The measure by which the rows of a triage label come: of wrong labels the label's probability
    knows more than the neighbours do, and those more than the influence."""
    wrong = ("given_probability", "disagreement") if word == MISLABELLED else ()
    return next((name for name in wrong if name in samples.numbers), "influence")


def _by_triage(samples: ScoreTable, room: Room) -> dict[str, Rows]:
    """The flagged rows of each label, most atypical first, but those that may be mislabelled by how
    doubtful their label is. These come first; then the label with fewest samples."""
    if samples.triage is None:
        return {}
    urgency = -np.nan_to_num(samples.percentiles["influence"], nan=-1.0)
    found: dict[str, Rows] = {}
    words, counts = np.unique(samples.triage.astype(str), return_counts=True)
    for word in words[np.lexsort((counts, words != MISLABELLED))]:
        if word:
            rows = np.flatnonzero(samples.triage == word)
            keys = [urgency[rows]]
            by = sorted_by(str(word), samples)
            if by == "disagreement":
                keys.append(-np.nan_to_num(samples.numbers[by][rows], nan=-1.0))
            elif by == "given_probability":
                keys.append(np.nan_to_num(samples.numbers[by][rows], nan=2.0))
            found[str(word)] = rows[np.lexsort(keys)][: room.strip * _TRIAGE]
    return found
