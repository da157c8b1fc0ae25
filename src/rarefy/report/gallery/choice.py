"""Which samples a gallery shows: the flagged, the ends of each class, some at random.

Everything is chosen once, within a number of samples that any page has room for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy.report.gallery.table import MEASURES, Floats, Rows, ScoreTable

STRIP = 12
"""Samples of one strip (highest, lowest, random); fewer where many classes share the page."""
MOST_SAMPLES = 2_000
"""Samples of a page, neighbours among them: 9.5 MB with the largest pictures."""
MISLABELLED = "maybe mislabelled"
"""The label of ``rarefy.tools.influence.triage`` for samples whose label is in doubt."""
MOST_MISLABELLED, MOST_FLAGGED, MOST_UNDEFINED = 1_000, 400, 100
"""Samples that may be mislabelled, of all other triage labels together, and without a score."""


@dataclass(frozen=True)
class Choice:
    """Rows in the order in which they count: for each of ``classes`` (by size, the largest first)
    by measure and at random; and for the whole table by triage label and without a score.
    ``ends``: the length of both ends by measure."""

    classes: tuple[int, ...]
    ends: dict[str, int]
    highest: dict[str, dict[int, Rows]]
    lowest: dict[str, dict[int, Rows]]
    random: dict[int, Rows]
    triage: dict[str, Rows]
    undefined: Rows

    @property
    def rows(self) -> Rows:
        """All that is shown, each once, in order."""
        ends = [*self.highest.values(), *self.lowest.values()]
        strips = [rows for by_class in (*ends, self.random) for rows in by_class.values()]
        return np.unique(np.concatenate([*strips, *self.triage.values(), self.undefined]))


def choose(samples: ScoreTable) -> Choice:
    """The flagged samples first; strips share what these leave of the page, and leave a part of
    it to neighbours."""
    triage, undefined = _by_triage(samples), samples.undefined[:MOST_UNDEFINED]
    left = MOST_SAMPLES - sum(map(len, triage.values())) - len(undefined)
    sizes, members = samples.sizes(), samples.members()
    present = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    strip = min(STRIP, max(1, left // (3 * len(present))))
    classes = tuple(present[: left // (3 * strip)].tolist())
    others = strip // 2 if 8 * strip * len(classes) <= left else 0
    lengths = {name: others for name in MEASURES if name in samples.numbers} | {"influence": strip}
    highest: dict[str, dict[int, Rows]] = {name: {} for name in lengths}
    lowest: dict[str, dict[int, Rows]] = {name: {} for name in lengths}
    for name, length in lengths.items():
        for number in classes:
            both = ends_of(samples.numbers[name], members[number], length)
            highest[name][number], lowest[name][number] = both
    random = {number: _at_random(members[number], samples.ids, strip) for number in classes}
    return Choice(classes, lengths, highest, lowest, random, triage, undefined)


def ends_of(values: Floats, rows: Rows, most: int) -> tuple[Rows, Rows]:
    """The rows with the highest and with the lowest values; of equal ones the earlier come first,
    at both ends."""
    known = rows[np.isfinite(values[rows])]
    highest = np.argsort(-values[known], kind="stable")[:most]
    return known[highest], known[np.argsort(values[known], kind="stable")[:most]]


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


def _by_triage(samples: ScoreTable) -> dict[str, Rows]:
    """The flagged rows of each label, most atypical first, but those that may be mislabelled by how
    doubtful their label is. These come first; then the label with fewest samples."""
    if samples.triage is None:
        return {}
    urgency = -np.nan_to_num(samples.percentiles["influence"], nan=-1.0)
    found: dict[str, Rows] = {}
    words, counts = np.unique(samples.triage.astype(str), return_counts=True)
    each = MOST_FLAGGED // max(1, len(set(words) - {"", MISLABELLED}))
    for word in words[np.lexsort((counts, words != MISLABELLED))]:
        if word:
            rows = np.flatnonzero(samples.triage == word)
            keys = [urgency[rows]]
            by = sorted_by(str(word), samples)
            if by == "disagreement":
                keys.append(-np.nan_to_num(samples.numbers[by][rows], nan=-1.0))
            elif by == "given_probability":
                keys.append(np.nan_to_num(samples.numbers[by][rows], nan=2.0))
            most = MOST_MISLABELLED if word == MISLABELLED else each
            found[str(word)] = rows[np.lexsort(keys)][:most]
    return found
