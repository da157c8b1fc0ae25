"""Verdicts of ``regimes-at-scale``: at every dimension, and over the large ones."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_bound
from rarefy.studies.kit.reading import Naming
from rarefy.studies.scale.regimes.claims_over_d import over_d_verdicts
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.noise_claims import noise_statements
from rarefy.studies.scale.regimes.rows import laid_out
from rarefy.studies.scale.regimes.signal_claims import signal_statements
from rarefy.studies.scale.regimes.statement import Statement

CLAIMS = ("S1", "S2", "S3", "B3", "B4", "B5")


def statements_at(experiment: RegimesExperiment, results: xr.Dataset, d: float) -> list[Statement]:
    """What the theorems say at one dimension."""
    here = results.sel(d=d)
    return [*signal_statements(experiment, here), *noise_statements(experiment, here)]


def statements_by_d(experiment: RegimesExperiment, results: xr.Dataset) -> list[list[Statement]]:
    """Each statement at all d, in order of d."""
    by_d = [statements_at(experiment, results, d) for d in results["d"].values]
    return [list(one) for one in zip(*by_d, strict=True)]


def verdicts(experiment: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    results, setting = laid_out(results), experiment.setting
    found = []
    for d in results["d"].values:
        named = Naming(experiment, scale, after=f", d={float(d):g}, {setting}")
        found += [each.judged(named) for each in statements_at(experiment, results, d)]
    found += over_d_verdicts(experiment, results, scale)
    known = {each.claim for each in found}
    return found + [
        judge_bound(
            (claim, experiment.name, scale, f"its road was not walked, {setting}"),
            [],
            1.0,
            "at_least",
            note="no question asks for it",
        )
        for claim in CLAIMS
        if claim not in known
    ]
