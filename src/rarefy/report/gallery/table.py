"""The score table as plain arrays: what a gallery chooses from and shows.

Only ``label`` and ``influence`` must be there. A column that is absent or has no value at all is
left out of the page, never filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy.core.errors import bad_value
from rarefy.core.text import one_line
from rarefy.data.images.ids import short_hash

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

MEASURES = {
    "influence": "influence",
    "distance": "distance to class mean",
    "mahalanobis": "Mahalanobis distance",
    "disagreement": "neighbours with another label",
}
"""What a class can be sorted by, with the words for it."""
NUMBERS = {
    "given_probability": "probability of its label",
    "suggested_probability": "probability of the suggested label",
    **MEASURES,
    "norm": "feature norm",
    "own": "own term",
    "shared": "shared term",
    "shrinking": "divisor term",
}
"""Every number of a sample, in the order of the page."""

NAMELESS = "(no name)"
"""What a class with an empty name is called."""


def plain_text(value: object) -> str:
    """A name as one line that can be written as UTF-8; what cannot be seen is spelled out."""
    if value is None or (isinstance(value, float) and np.isnan(value)) or value is pd.NA:
        return ""
    return one_line(str(value))


@dataclass(frozen=True)
class ScoreTable:
    """All rows of a table: ``numbers`` and ``percentiles`` (within the class) by column name.
    ``fingerprint``: the same for the same samples and labels; picks are kept under it.
    ``suggested``: the class that a sample might belong to instead, -1 for none."""

    classes: tuple[str, ...]
    label: Rows
    ids: NDArray[np.object_]
    index: Rows
    names: NDArray[np.object_]
    numbers: dict[str, Floats]
    percentiles: dict[str, Floats]
    fingerprint: str
    neighbour_label: NDArray[np.object_] | None
    suggested: Rows
    copies: Rows | None
    conflict: NDArray[np.bool_] | None
    triage: NDArray[np.object_] | None
    rule: NDArray[np.object_] | None

    def __len__(self) -> int:
        return len(self.label)

    @property
    def undefined(self) -> Rows:
        """Rows without a score: the covariance of what is left of their class has no value."""
        return np.flatnonzero(~np.isfinite(self.numbers["influence"]))

    def members(self) -> list[Rows]:
        """The rows of each class that have a score, in the order of the data."""
        scored = np.isfinite(self.numbers["influence"])
        order = np.argsort(self.label, kind="stable")
        order = order[scored[order]]
        edges = np.searchsorted(self.label[order], np.arange(len(self.classes) + 1))
        return [order[start:stop] for start, stop in zip(edges, edges[1:], strict=False)]

    def sizes(self) -> Rows:
        """How many samples each class has, with and without a score."""
        return np.bincount(self.label, minlength=len(self.classes)).astype(np.int64)


def read_table(table: pd.DataFrame, classes: Sequence[str] | None = None) -> ScoreTable:
    """Take a score table apart; ``classes`` gives their order (None: as they come)."""
    for column in ("label", "influence"):
        if column not in table:
            found = ", ".join(map(str, table.columns)) or "none"
            raise bad_value("table", f"columns {found}", f"must have a column {column!r}")
    names = list(table["label"].unique()) if classes is None else list(classes)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise bad_value("classes", twice, "must not name a class twice")
    label = pd.Index(names).get_indexer(table["label"])
    if (label < 0).any():
        lost = table["label"].iloc[int(np.argmin(label))]
        raise bad_value("classes", tuple(names[:5]), f"must hold every label; {lost!r} is missing")
    numbers = {
        name: table[name].to_numpy(np.float64, na_value=np.nan) for name in NUMBERS if name in table
    }
    numbers = {
        name: values
        for name, values in numbers.items()
        if name == "influence" or np.isfinite(values).any()
    }
    # the divisor's term is the same for a whole class: a rank would say nothing
    percentiles = {n: _ranks(v, label) for n, v in numbers.items() if n != "shrinking"}
    if "percentile" in table:
        percentiles["influence"] = table["percentile"].to_numpy(np.float64, na_value=np.nan)
    ids = _texts(table, "id", range(len(table)))
    shown = tuple(plain_text(name) or NAMELESS for name in names)
    return ScoreTable(
        classes=shown,
        label=np.asarray(label, dtype=np.int64),
        ids=ids,
        index=_whole(table, "index", np.arange(len(table))),
        names=_texts(table, "name", [""] * len(table)),
        numbers=numbers,
        percentiles=percentiles,
        fingerprint=str(table.attrs.get("fingerprint") or _fingerprint(ids, shown, label)),
        suggested=_suggested(table, names, label),
        neighbour_label=_texts(table, "neighbour_label") if "neighbour_label" in table else None,
        copies=_whole(table, "copies", np.zeros(len(table))) if "copies" in table else None,
        conflict=_whole(table, "conflict", np.zeros(len(table))) > 0
        if "conflict" in table
        else None,
        triage=_texts(table, "triage") if "triage" in table else None,
        rule=_texts(table, "rule") if "rule" in table else None,
    )


def _fingerprint(ids: NDArray[np.object_], classes: Sequence[str], label: Rows) -> str:
    """Of a table that does not bring the one of its data."""
    pairs = (f"{one} {classes[at]}" for one, at in zip(ids, label, strict=True))
    return short_hash([repr(tuple(classes)), *sorted(pairs)])


def _suggested(table: pd.DataFrame, names: Sequence[object], label: Rows) -> Rows:
    """The label check's suggestion; without one the label that most neighbours have."""
    column = next((c for c in ("suggested_label", "neighbour_label") if c in table), None)
    if column is None:
        return np.full(len(table), -1, dtype=np.int64)
    found = np.asarray(pd.Index(names).get_indexer(table[column]), dtype=np.int64)
    return np.where(found == label, -1, found)


def _ranks(values: Floats, label: Rows) -> Floats:
    """Where a value stands within its class, from 0 (lowest) to 100; equal values share a place."""
    ranked = pd.Series(np.where(np.isfinite(values), values, np.nan)).groupby(label)
    above = ranked.count().reindex(label).to_numpy() - 1
    places = ranked.rank().to_numpy() - 1
    return np.divide(100 * places, above, out=np.full(len(values), np.nan), where=above > 0)


def _texts(table: pd.DataFrame, name: str, otherwise: Sequence[object] = ()) -> NDArray[np.object_]:
    texts = np.empty(len(table), dtype=object)
    texts[:] = [plain_text(v) for v in (table[name].tolist() if name in table else otherwise)]
    return texts


def _whole(table: pd.DataFrame, name: str, otherwise: NDArray[np.generic]) -> Rows:
    if name not in table:
        return otherwise.astype(np.int64)
    return np.nan_to_num(table[name].to_numpy(np.float64, na_value=np.nan)).astype(np.int64)
