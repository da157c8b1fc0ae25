"""How the theorems of 004 are read in a finite setting, and how far that is from the parameter
choices of App. B.3."""

from __future__ import annotations

import math

from rarefy.measure.statistics import OMEGA
from rarefy.studies.granularity.experiment import GranularityExperiment
from rarefy.theory.conditions import Condition
from rarefy.theory.granularity_conditions import LABELS, parameter_choices

SMALL = 0.05
"""o(1), of an error or of a training loss: one in twenty, a tenth of chance. A reader of a picture
sees such a curve on the ground; a network with one feature in twenty unseen passes."""
CHANCE = 0.5
"""Error of tossing a coin on the coarse question."""
ORDER_ONE = OMEGA * CHANCE
"""Omega(1), of an error: a quarter of chance."""


def polylog(d: int) -> float:
    """Read as log(d), the least it can be: of k (Theorem 5.1) and of P sigma (App. B.3, 13)."""
    return math.log(d)


def noise_load(setting: GranularityExperiment) -> float:
    """P sigma_zeta (App. B.3, 13), which must exceed polylog(d)."""
    return setting.patches * setting.sigma


def premises(setting: GranularityExperiment, subclasses: int) -> dict[Condition, str]:
    """App. B.3 with so many subclasses per side, and the labels each line is about: "coarse",
    "fine" or "both"."""
    data = ("d", "patches", "feature_patches", "spread", "sigma", "distractors", "strong")
    given = setting.some(*data, "neurons", "threshold", "sigma_0", "lr", "batch")
    strengths = (setting.distraction, setting.distraction)
    found: dict[Condition, str] = {}
    for labels in LABELS:
        for each in parameter_choices(
            labels=labels, subclasses=subclasses, distraction=strengths, **given
        ):
            found[each] = "both" if each in found else labels
    return found
