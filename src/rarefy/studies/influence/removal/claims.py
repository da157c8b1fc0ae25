"""B13: leaving out low scores leaves more accuracy than leaving out high ones."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import judge_difference
from rarefy.studies.kit.reading import Naming
from rarefy.tools.influence.removal_experiment import RemovalExperiment
from rarefy.tools.influence.removal_tables import (
    ASKED,
    HIGH,
    LOW,
    PLACES,
    about_draws,
    accuracies,
    removed,
)


def verdicts(experiment: RemovalExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """On average over the fractions, and at each."""
    found = []
    there = set(results["by"].values.tolist())
    fractions = removed(results)
    note = joined(
        "points: accuracy without low scores less that without high ones", about_draws(experiment)
    )
    for within in results["within"].values.tolist():
        for asked, words in ASKED.items():
            named = Naming(experiment, scale, f"{experiment.setting}, {PLACES[within]}, {words}: ")
            samples = np.full((results.sizes["seed"], len(fractions)), np.nan)
            if {HIGH, LOW} <= there:
                low, high = (accuracies(results, asked, within, by) for by in (LOW, HIGH))
                samples = low - high
            cases = {"mean over fractions": samples[:, fractions > 0].mean(axis=1)} | {
                f"{fraction:g} left out": samples[:, place]
                for place, fraction in enumerate(fractions)
                if fraction > 0
            }
            for what, values in cases.items():
                found.append(judge_difference(named("B13", what), values, "positive", note=note))
    return found
