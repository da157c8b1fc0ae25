"""B13: leaving out low scores leaves more accuracy than leaving out high ones."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import judge_difference
from rarefy.studies.influence.removal.experiment import RemovalExperiment
from rarefy.studies.influence.removal.tables import (
    HIGH,
    LOW,
    PLACES,
    about_draws,
    accuracies,
    removed,
)
from rarefy.studies.kit.reading import Naming

PRIMARY = {"mnist": "B13.1", "cifar10": "B13.2"}
"""003's protocol: sorted over the whole set, all test samples; its two sets."""
ASKED = {"test_accuracy": "all test samples", "far_accuracy": "those farthest from the class mean"}
"""(Of the tail that the score itself chooses only tables tell.)"""


def verdicts(experiment: RemovalExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """On average over the fractions; by the paper's protocol also at each."""
    found, fractions = [], removed(results)
    if not {HIGH, LOW} <= set(results["by"].values.tolist()) or not (fractions > 0).any():
        return []
    note = joined(
        "points: accuracy without low scores less that without high ones", about_draws(experiment)
    )
    for within in results["within"].values.tolist():
        for asked, words in ASKED.items():
            named = Naming(experiment, scale, f"{experiment.setting}, {PLACES[within]}, {words}: ")
            low, high = (accuracies(results, asked, within, by) for by in (LOW, HIGH))
            samples = low - high
            theirs = within == "all" and asked == "test_accuracy"
            claim = PRIMARY.get(experiment.data, "B13") if theirs else "B13"
            mean = samples[:, fractions > 0].mean(axis=1)
            identity = named(claim, "mean over fractions")
            found.append(judge_difference(identity, mean, "positive", note=note))
            for place in np.flatnonzero(fractions > 0) if theirs else ():
                identity = named("B13", f"{fractions[place]:g} left out")
                at = samples[:, place]
                found.append(judge_difference(identity, at, "positive", note=note))
    return found
