"""What the page shows without its script: cards of classes and triage labels, cells of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rarefy.report.gallery.choice import Choice, sorted_by
from rarefy.report.gallery.columns import Features
from rarefy.report.gallery.numbers import Histogram, histogram
from rarefy.report.gallery.table import Rows, ScoreTable

_RULES = 3  # so many different rules of a triage label are all written out
ORDERS = {
    "influence": "most atypical",
    "disagreement": "most other labels nearby",
    "given_probability": "least likely label",
}
"""Which samples of a triage label come first, in words."""


@dataclass(frozen=True)
class Cell:
    """One sample: its place among the shown ones, and what is written below and about it;
    ``features`` where it has no picture."""

    place: int
    label: str
    value: str
    spoken: str
    picture: bool
    features: list[tuple[str, str]]


@dataclass(frozen=True)
class ClassCard:
    """A class: ``shown`` of ``size`` samples, of which ``scored`` have a score."""

    number: int
    name: str
    size: int
    scored: int
    shown: int
    scores: Histogram | None
    strips: list[tuple[str, str, list[Cell]]]


@dataclass(frozen=True)
class TriageCard:
    """The samples of one triage label, with the rules that gave it and how often each did; where
    almost every sample has numbers of its own in it, one rule as an ``example``."""

    word: str
    measure: str
    order: str
    size: int
    cells: list[Cell]
    rules: list[tuple[str, int]]
    example: str


@dataclass
class Cells:
    """Makes cells of rows."""

    samples: ScoreTable
    rows: Rows
    addresses: Sequence[str]
    features: Features | None = None
    _place: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._place = {int(row): place for place, row in enumerate(self.rows)}

    def of(self, rows: Iterable[int]) -> list[Cell]:
        return [self._cell(int(row)) for row in rows]

    def _cell(self, row: int) -> Cell:
        samples, place = self.samples, self._place[row]
        score = samples.numbers["influence"][row]
        value = f"{score:.4g}" if np.isfinite(score) else "undefined"
        label = samples.classes[samples.label[row]]
        name = samples.names[row].rpartition("/")[2] or f"sample {samples.index[row]}"
        spoken = f"{label}, {name}, influence {value}"
        percentile = samples.percentiles["influence"][row]
        if np.isfinite(percentile):
            spoken += f", percentile {percentile:.4g}"
        told = [] if self.features is None else self.features.told(row)
        return Cell(place, label, value, spoken, bool(self.addresses[place]), told)


def class_cards(samples: ScoreTable, choice: Choice, cells: Cells) -> list[ClassCard]:
    """In the order of the classes."""
    members, sizes = samples.members(), samples.sizes()
    shown = Counter(samples.label[cells.rows].tolist())
    cards = []
    for number in sorted(choice.classes):
        strips = (
            ("highest", "Highest", choice.highest["influence"][number]),
            ("lowest", "Lowest", choice.lowest["influence"][number]),
            ("random", "At random", choice.random[number]),
        )
        cards.append(
            ClassCard(
                number=number,
                name=samples.classes[number],
                size=int(sizes[number]),
                scored=len(members[number]),
                shown=shown[number],
                scores=histogram(samples.numbers["influence"][members[number]]),
                strips=[(k, said, cells.of(rows)) for k, said, rows in strips],
            )
        )
    return cards


def triage_cards(samples: ScoreTable, choice: Choice, cells: Cells) -> list[TriageCard]:
    """A card for each label that occurs."""
    cards = []
    for word, chosen in choice.triage.items():
        flagged = np.flatnonzero(samples.triage == word)
        told = [""] if samples.rule is None else samples.rule[[*chosen[:1], *flagged]].tolist()
        example, *each = told
        rules = Counter(rule for rule in each if rule)
        few = len(rules) <= _RULES
        cards.append(
            TriageCard(
                word=word,
                measure=sorted_by(word, samples),
                order=ORDERS[sorted_by(word, samples)],
                size=len(flagged),
                cells=cells.of(chosen),
                rules=rules.most_common() if few else [],
                example="" if few else example,
            )
        )
    return cards
