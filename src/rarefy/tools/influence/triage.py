"""Triage labels: what a curator should look at a sample for, and the rule that gave each.

The rules are few, fixed and told: they sort what to look at first, and prove nothing. A label in
doubt comes before all else, so that every count of them is the same number. ``docs/scoreboard.md``
says how well the columns behind them find flips, rare modes and copies that were put in on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy.core.errors import bad_value
from rarefy.data.images.listing import listed

CONFLICT, CORRUPT = "duplicate in conflict", "maybe corrupt"
MISLABELLED, RARE = "maybe mislabelled", "rare but right"
TRIAGE_LABELS = (MISLABELLED, CONFLICT, CORRUPT, RARE)
_NORMAL = 1.4826
"""A normal sample's std is so many times its median distance from the median."""


@dataclass(frozen=True)
class Rules:
    """Where the lines are drawn; fixed before any data set was looked at."""

    far: float = 8.0
    """Robust stds above the class's median distance (or to either side of its median norm) from
    which a sample may be corrupt: far beyond anything that a class of its kind has."""
    disagreeing: float = 0.8
    """Least share of neighbours with another label for an unchecked label to be in doubt."""
    agreeing: float = 0.5
    """Largest such share with which a label still counts as right. Where the median sample of a
    class has more, neighbours say nothing about labels (a rare class among larger ones, raw pixels
    of photographs): no label of that class is called in doubt by them, and a note says so."""
    atypical: float = 95.0
    """Percentile of the influence within its class from which a sample is rare."""

    def __post_init__(self) -> None:
        if not self.far > 0:
            raise bad_value("far", self.far, "must be above 0")
        for name in ("disagreeing", "agreeing"):
            if not 0 <= getattr(self, name) <= 1:
                raise bad_value(name, getattr(self, name), "must be from 0 to 1")
        if not 0 <= self.atypical <= 100:
            raise bad_value("atypical", self.atypical, "must be from 0 to 100")


def add_triage(table: pd.DataFrame, rules: Rules | None = None) -> pd.DataFrame:
    """The table with its columns ``triage`` and ``rule`` filled in, and ``label_issue`` and
    ``suggested_label`` by neighbours where no label check has spoken: a label in doubt is one by
    ``label_issue``, "maybe mislabelled" and a suggestion for it, or by none of them."""
    rules = rules or Rules()
    near = table["given_probability"].isna().to_numpy() & _doubted_by_neighbours(table, rules)
    table = table.assign(
        label_issue=table["label_issue"].to_numpy(dtype=bool) | near,
        suggested_label=table["suggested_label"].mask(near, table["neighbour_label"]),
    )
    words = np.full(len(table), "", dtype=object)
    why = np.full(len(table), "", dtype=object)
    for word, chosen, reason in _rules_in_order(table, rules, near):
        new = chosen & (words == "")
        words[new] = word
        for row in np.flatnonzero(new).tolist():
            why[row] = reason(row)
    return table.assign(triage=words, rule=why)


def doubts_in(table: pd.DataFrame) -> pd.DataFrame:
    """The samples whose label is in doubt, the least likely labels first; then those that only
    neighbours have spoken of."""
    doubted = table[table["label_issue"]]
    return doubted.sort_values(["given_probability", "disagreement"], ascending=[True, False])


def _doubted_by_neighbours(table: pd.DataFrame, rules: Rules) -> NDArray[np.bool_]:
    disagreeing = table["disagreement"].to_numpy(dtype=np.float64) >= rules.disagreeing
    other = table["neighbour_label"].to_numpy() != table["label"].to_numpy()
    return disagreeing & other & ~table["label"].isin(_silent_classes(table, rules)).to_numpy()


def _rules_in_order(
    table: pd.DataFrame, rules: Rules, near: NDArray[np.bool_]
) -> Iterator[tuple[str, NDArray[np.bool_], Callable[[int], str]]]:
    """(word, which rows, the reason of a row); the first that fits counts."""
    label = table["label"].to_numpy()
    given, likelier = table["given_probability"], table["suggested_probability"]
    suggested = table["suggested_label"]
    other = table["disagreement"].to_numpy(dtype=np.float64)

    def doubts(row: int) -> str:
        if near[row]:
            return (
                f"{100 * other[row]:.0f} % of its neighbours have another label, most of all "
                f"{suggested[row]!r} (from {100 * rules.disagreeing:g} % on)"
            )
        return (
            f"label check: {suggested[row]!r} at {100 * likelier[row]:.0f} %, its own label at "
            f"{100 * given[row]:.0f} %"
        )

    in_doubt = table["label_issue"].to_numpy()
    yield MISLABELLED, in_doubt, doubts
    copies = table["copies"].to_numpy()
    yield (
        CONFLICT,
        table["conflict"].to_numpy(dtype=bool),
        lambda row: f"{copies[row]} other samples have the same content, not all the same label",
    )
    distance = robust_deviation(table["distance"].to_numpy(), label)
    norm = np.abs(robust_deviation(table["norm"].to_numpy(), label))
    yield (
        CORRUPT,
        (norm > rules.far) | (distance > rules.far),
        lambda row: (
            f"distance from the class mean {distance[row]:.1f}, norm {norm[row]:.1f} robust stds "
            f"from the class's median (from {rules.far:g} on)"
        ),
    )
    percentile = table["percentile"].to_numpy()
    right = table["likeliest"].to_numpy(dtype=bool) & (other <= rules.agreeing)
    yield (
        RARE,
        (percentile >= rules.atypical) & right,  # (not without neighbours)
        lambda row: (
            f"influence at percentile {percentile[row]:.1f} of its class (from "
            f"{rules.atypical:g} on), its label is the likeliest, and "
            f"{100 - 100 * other[row]:.0f} % of its neighbours share it"
        ),
    )


def _silent_classes(table: pd.DataFrame, rules: Rules) -> list[str]:
    """Classes whose median sample's neighbours mostly have other labels."""
    median = table.groupby("label", sort=False)["disagreement"].median()
    return [str(label) for label in median.index[median > rules.agreeing]]


def silent_neighbours(table: pd.DataFrame, rules: Rules) -> list[str]:
    """For which classes neighbours say nothing about labels that were not checked, in a line."""
    silent = _silent_classes(table[table["given_probability"].isna()], rules)
    if not silent:
        return []
    classes = "class" if len(silent) == 1 else f"{len(silent):,} classes:"
    return [
        f"neighbour rule is off for {classes} {listed(silent)} (most neighbours of its median "
        "sample have other labels)"
    ]


def robust_deviation(values: NDArray[np.float64], label: NDArray[np.object_]) -> NDArray:
    """How many robust stds (by the median distance from the median) a value lies above the median
    of its class; 0 where a class has no spread, so that no rule fires on rounding."""
    classes, _ = pd.factorize(label)

    def median(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return pd.Series(numbers).groupby(classes).transform("median").to_numpy()

    middle = median(values)
    spread = _NORMAL * median(np.abs(values - middle))
    found = np.zeros(len(values))
    known = np.isfinite(spread) & (spread > 1e-12 * np.maximum(1.0, np.abs(middle)))
    found[known] = np.nan_to_num((values - middle)[known] / spread[known])
    return found
