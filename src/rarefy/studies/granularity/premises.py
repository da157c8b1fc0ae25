"""How far a finite setting is from the parameter choices of 004 App. B.3."""

from __future__ import annotations

import math

from rarefy.core.picture import Table
from rarefy.studies.granularity.experiment import GranularityExperiment
from rarefy.theory.conditions import COLUMNS, Condition, table_rows
from rarefy.theory.granularity_conditions import (
    LABELS,
    parameter_choices,
    smallest_log_dimension,
)


def least_subclasses(d: int) -> float:
    """k >= polylog(d) (004 Theorem 5.1), read as log(d), the least it can be."""
    return math.log(d)


def most_subclasses(d: int) -> float:
    """k <= d^0.4 (004 Theorem 5.2)."""
    return float(d**0.4)


def noise_load(study: GranularityExperiment) -> float:
    """P sigma_zeta (App. B.3, 13), which must exceed polylog(d)."""
    return study.patches * study.sigma


def least_load(d: int) -> float:
    """polylog(d) there, read as log(d)."""
    return math.log(d)


def premises(study: GranularityExperiment, subclasses: int) -> dict[Condition, str]:
    """App. B.3 with so many subclasses a side, and the labels each line is about: "coarse", "fine"
    or "both"."""
    found: dict[Condition, str] = {}
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
            found[each] = "both" if each in found else labels
    return found


def premise_table(study: GranularityExperiment, subclasses: int, where: str = "") -> Table:
    """The table of App. B.3; ``where`` says of which part of a study's grid."""
    found = premises(study, subclasses)
    rows = zip(found.values(), table_rows(list(found)), strict=True)
    return Table(
        "premises",
        "How far the setting is from what the theorems assume",
        f"004 App. B.3 (m: App. C, G) with {subclasses} subclasses a side{where}; polylog(d) is "
        "read as log(d) and every constant as 1. Lines 4 and 10 together need log(d) of at least "
        f"{smallest_log_dimension():.0f}: no computer reaches that, so what is judged is whether a "
        "finite network already behaves as the theorems say.",
        ("labels", *COLUMNS),
        [[labels, *row] for labels, row in rows],
    )
