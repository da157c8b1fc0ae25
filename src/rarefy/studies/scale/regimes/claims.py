"""Verdicts of ``regimes-at-scale``: at every dimension, and over the large ones.

No theorem has d in its boundary but through SNR, |A_k^T A_j|_F and Gamma: exponents in d are 0
(for Gamma* at most 0, as no statement bounds the error of long-tailed data from below).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Slope, judge_bound, judge_equal
from rarefy.studies.kit.reading import Naming
from rarefy.studies.scale.questions import question_of
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.law_claims import length_verdicts, level_statements
from rarefy.studies.scale.regimes.noise_claims import SIDES, noise_statements
from rarefy.studies.scale.regimes.rows import (
    Boundaries,
    exponent,
    laid_out,
    log10,
    mean_of,
    words_of,
)
from rarefy.studies.scale.regimes.signal_claims import signal_statements
from rarefy.studies.scale.regimes.statement import DRIFT, Statement
from rarefy.studies.topk.regimes.boundary import HALF
from rarefy.theory.unpruned_limit import limit_ratio

CLAIMS = ("S1", "S2", "S3", "B3", "B4", "B5")

SETTLED = 10**4
"""The d from which on boundaries should have settled: twenty times the largest number of samples
at scale paper, so that no two samples' noise patches are much alike."""
NEAR = 1.5
"""Factor within which the closed form for endless d is met: half more or less, well inside the 4
that hidden constants are allowed, as this form hides none."""
NAMES = {
    "signal": ("S3", "n SNR^2/T at the boundary"),
    "feature": ("B3", "x*"),
    "side": ("B4", f"Gamma*, tail {SIDES['side']}"),
    "tail": ("B4", f"Gamma*, tail {SIDES['tail']}"),
}
"""Claim and name of what is found on each path."""


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
    found += _over_d(experiment, results, scale)
    known, road = {each.claim for each in found}, f"its road was not walked, {setting}"
    unwalked = Naming(experiment, scale)
    return found + [
        judge_bound(unwalked(claim, road), [], 1.0, "at_least", note="no question asks for it")
        for claim in CLAIMS
        if claim not in known
    ]


def _over_d(study: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    large = results.isel(d=np.flatnonzero(results["d"].values >= SETTLED))
    named = Naming(study, scale, after=f", {_range(large)}, {study.setting}")
    drifts = [_drift(large, path) for path in NAMES if words_of(large, path)]
    return [
        *(each.judged(named) for each in drifts + level_statements(study, large)),
        *length_verdicts(study, large, named),
        *_closed_form(study, results, scale),
    ]


def _range(large: xr.Dataset) -> str:
    """The large dimensions, in words."""
    d = [f"{float(value):g}" for value in large["d"].values]
    return f"d={' to '.join(dict.fromkeys((d[0], d[-1])))}" if d else f"no d from {SETTLED:g} on"


def _drift(large: xr.Dataset, path: str) -> Statement:
    """Exponent in d, from the geometric mean over sizes, classes and questions."""
    found = Boundaries(large, words_of(large, path))
    claim, name = NAMES[path]
    if large.sizes["d"] < 2:
        slope, lost = Slope(np.nan, np.nan, np.nan, 0, large.sizes["d"]), 0.0
        note = f"needs two dimensions from {SETTLED:g} on"
    else:
        others = [dim for dim in found.place.dims if dim not in ("seed", "d")]
        slope = exponent(found.place.mean(others), {"d": log10(large["d"])}, "d")
        lost, note = found.lost, found.note
    if path == "signal":
        note = f"not a claim of the paper; {note}"
    what = f"exponent in d of {name}"
    return Statement(claim, what, slope, 0.0, DRIFT, path in SIDES, note, lost)


# -------------------------------------------------------------------------------------- closed form


def closed_form(results: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray] | None:
    """log10 of n SNR^2/T at the boundary, NaN where it has none, and of its closed form for endless
    d, (seed, size, classes, d); None where the test loss was not followed to half of log T."""
    words = [word for word in words_of(results, "signal") if question_of(word).number == HALF]
    if not words:
        return None
    rows = results.sel(question=words[0])
    at = rows.sel(place="boundary")
    limit = xr.apply_ufunc(limit_ratio, rows["classes"], at["train_loss"], at["noise_active"])
    return rows["boundary"], log10(limit)


def _closed_form(study: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    both = closed_form(results)
    if both is None:
        return []
    d, word = results["d"].values[-1], words_of(results, "signal")[0]
    apart = (both[0] - both[1]).sel(d=d)
    seeds = apart.mean([dim for dim in apart.dims if dim != "seed"]).values
    active = float(results["noise_active"].sel(question=word, place="boundary", d=d).mean())
    named = Naming(study, scale, after=f", d={float(d):g}, {study.setting}")
    identity = named("S3", "log10 of n SNR^2/T at the boundary over its closed form for endless d")
    note = (
        f"not a claim of the paper; within a factor {NEAR:g}; {active:.3g} of a sample's filters "
        f"respond to its noise; {int(apart.notnull().sum())} of {apart.size} rows have a boundary"
    )
    return [judge_equal(identity, mean_of(seeds), 0.0, float(np.log10(NEAR)), note=note)]
