"""Which reading of TopK the published figure looks like (claim S7)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.regions import overlap
from rarefy.measure.statistics import judge_difference
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.studies.topk.phase.regions import SHUT, measured_region, published_region


def reading_verdicts(study: PhaseExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """Which reading the published figure looks like: overlaps with it, paired by seed."""
    readings = [str(reading) for reading in results["reading"].values]
    region = published_region(study, results)
    scores = {
        reading: np.array(
            [overlap(measured_region(results, reading, seed), region) for seed in results["seed"]]
        )
        for reading in readings
    }
    found = []
    for other in (word for word in readings if SHUT in readings and word != SHUT):
        difference = scores[SHUT] - scores[other]
        nearer = int((difference > 0).sum())
        found.append(
            judge_difference(
                (
                    "S7",
                    study.name,
                    scale,
                    f"{study.setting}: overlap with the published region, {SHUT} minus {other}",
                ),
                difference,
                "positive",
                note=f"{SHUT} is nearer in {nearer} of {len(difference)} seeds; which reading the "
                "figure was made with is not a claim of the paper",
            )
        )
    return found
