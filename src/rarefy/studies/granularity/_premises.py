"""How far a finite setting is from the parameter choices of 004 App. B.3."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rarefy.core.picture import Table
from rarefy.theory.conditions import COLUMNS, Condition, table_rows
from rarefy.theory.granularity_conditions import LABELS, parameter_choices

if TYPE_CHECKING:
    from rarefy.studies.granularity._granularity import GranularityStudy


def least_subclasses(d: int) -> float:
    """k >= polylog(d) (004 Theorem 5.1), read as log(d), the least it can be."""
    return math.log(d)


def most_subclasses(d: int) -> float:
    """k <= d^0.4 (004 Theorem 5.2)."""
    return float(d**0.4)


def noise_load(study: GranularityStudy) -> float:
    """P sigma_zeta (App. B.3, 13), which must exceed polylog(d)."""
    return study.patches * study.sigma


def least_load(d: int) -> float:
    """polylog(d) there, read as log(d)."""
    return math.log(d)


def premises(study: GranularityStudy, subclasses: int) -> list[Condition]:
    """App. B.3 with so many subclasses a side, for coarse labels and for fine ones."""
    found: list[Condition] = []
    for labels in LABELS:
        for each in parameter_choices(
            labels=labels,
            d=study.d,
            subclasses=subclasses,
            patches=study.patches,
            feature_patches=study.feature_patches,
            spread=study.spread,
            sigma=study.sigma,
            distractors=study.distractors,
            distraction=(study.distraction, study.distraction),
            strong=study.strong,
            neurons=study.neurons,
            threshold=study.threshold,
            sigma_0=study.sigma_0,
            lr=study.lr,
            batch=study.batch,
        ):
            if each not in found:  # most lines are the same for both
                found.append(each)
    return found


def premise_table(study: GranularityStudy, subclasses: int, where: str = "") -> Table:
    return Table(
        "premises",
        "How far the setting is from what the theorems assume",
        f"004 App. B.3 (and App. C, G for m) with {subclasses} subclasses a side{where}; lines 6 "
        "and m first for coarse, then for fine labels. The theorems are about d so large that "
        "every line holds; no computer reaches that, so what is judged is whether a finite "
        "network already behaves as they say.",
        COLUMNS,
        [list(row) for row in table_rows(premises(study, subclasses))],
    )
