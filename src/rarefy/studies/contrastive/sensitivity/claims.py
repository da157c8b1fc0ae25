"""Verdicts of ``contrast-sensitivity``: C10 under every variation."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.contrastive.sensitivity.experiment import VARIATIONS, SensitivityExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.reading import Reading, judge_all, rises
from rarefy.studies.kit.slices import every


def verdicts(experiment: SensitivityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    read = experiment.reads[-2]
    readings = [
        Reading(
            "C10",
            f"best cosine, {VARIATIONS[int(variation)][0]}, {bias_name(bias)}",
            "best",
            rises("eps_min"),
            at={"bias_scale": bias, "variation": variation, "read": read},
            note=f"read at step {read}",
        )
        for (bias, variation), _ in every(results, "bias_scale", "variation")
    ]
    return judge_all(experiment, results, scale, readings)
