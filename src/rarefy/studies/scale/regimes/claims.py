"""Verdicts of ``regimes-at-scale``: at every dimension, and over the large ones."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_bound
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.noise_parts import noise_parts
from rarefy.studies.scale.regimes.over_d import over_d_verdicts
from rarefy.studies.scale.regimes.part import Part
from rarefy.studies.scale.regimes.signal_parts import signal_parts

CLAIMS = ("S1", "S2", "S3", "B3", "B4", "B5")


def parts_at(study: RegimesExperiment, results: xr.Dataset, d: float) -> list[Part]:
    """What the theorems say at one ``d``, part by part."""
    here = results.sel(d=d)
    return [*signal_parts(study, here), *noise_parts(study, here)]


def scale_verdicts(study: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    results = results.sortby(["d", "size", "classes"])
    found = [
        part.judged(study.name, scale, f"d={float(d):g}, {study.setting}")
        for d in results["d"].values
        for part in parts_at(study, results, d)
    ]
    found += over_d_verdicts(study, results, scale)
    missing = [claim for claim in CLAIMS if claim not in {each.claim for each in found}]
    return found + [
        judge_bound(
            (claim, study.name, scale, f"its road was not walked, {study.setting}"),
            np.empty(0),
            1.0,
            "at_least",
            note="no question asks for it",
        )
        for claim in missing
    ]
