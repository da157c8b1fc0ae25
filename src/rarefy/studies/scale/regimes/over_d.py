"""What the theorems say of all large dimensions together.

No theorem has d in its boundary but through SNR, |A_k^T A_j|_F and Gamma: exponents in d are 0
(for Gamma* at most 0, as no statement bounds the error of long-tailed data from below).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Slope, judge_equal
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.laws import length_verdicts, level_parts
from rarefy.studies.scale.regimes.noise_parts import SIDES
from rarefy.studies.scale.regimes.part import DRIFT, Part
from rarefy.studies.scale.regimes.questions import question_of
from rarefy.studies.scale.regimes.rows import (
    beyond_note,
    boundaries_of,
    exponent,
    log10,
    mean_of,
    on,
    share_beyond,
    words_of,
)
from rarefy.studies.topk.regimes.boundary import HALF
from rarefy.theory.unpruned_limit import limit_ratio

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
"""Claim and name of what is found on each road."""


def settled(results: xr.Dataset) -> xr.Dataset:
    return results.isel(d=np.flatnonzero(results["d"].values >= SETTLED))


def over_d_verdicts(study: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    large = settled(results)
    where = f"{_range(large)}, {study.setting}"
    parts = [part for road in NAMES for part in drift_parts(large, road)]
    found = [part.judged(study.name, scale, where) for part in parts + level_parts(study, large)]
    found += length_verdicts(study, large, scale, where)
    return found + _closed_form(study, results, scale)


def _range(large: xr.Dataset) -> str:
    """The large dimensions, in words."""
    d = large["d"].values
    if len(d) > 1:
        return f"d={float(d.min()):g} to {float(d.max()):g}"
    return f"d={float(d[0]):g}" if len(d) else f"no d from {SETTLED:g} on"


def drift_parts(large: xr.Dataset, road: str) -> list[Part]:
    """Exponent in d, from the geometric mean over sizes, classes and questions."""
    words = words_of(large, road)
    if not words:
        return []
    claim, name = NAMES[road]
    if large.sizes["d"] < 2:
        slope, lost = Slope(np.nan, np.nan, np.nan, 0, large.sizes["d"]), 0.0
        note = f"needs two dimensions from {SETTLED:g} on"
    else:
        slope, lost = _drift(large, words), share_beyond(large, words)
        note = beyond_note(large, words)
    if road == "signal":
        note = f"not a claim of the paper; {note}"
    one_sided = road in SIDES
    what = f"exponent in d of {name}"
    return [Part(claim, what, slope, 0.0, DRIFT, one_sided, note, lost)]


def _drift(large: xr.Dataset, words: Sequence[str]) -> Slope:
    place = boundaries_of(large, words)
    others = [dim for dim in place.dims if dim not in ("seed", "d")]
    return exponent(place.mean(others), {"d": log10(large["d"])}, "d")


# -------------------------------------------------------------------------------------- closed form


def closed_form(results: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray] | None:
    """log10 of n SNR^2/T at the boundary, NaN where it has none, and of its closed form for endless
    d, (seed, size, classes, d); None where the test loss was not followed to half of log T."""
    words = [word for word in words_of(results, "signal") if question_of(word).number == HALF]
    if not words:
        return None
    rows = on(results, words[0])
    at = rows.sel(place="boundary")
    limit = xr.apply_ufunc(limit_ratio, rows["classes"], at["train_loss"], at["noise_active"])
    return rows["boundary"], log10(limit)


def _closed_form(study: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    both = closed_form(results)
    if both is None:
        return []
    d = results["d"].values.max()
    apart = (both[0] - both[1]).sel(d=d)
    seeds = apart.mean([dim for dim in apart.dims if dim != "seed"]).values
    active = on(results, words_of(results, "signal")[0]).sel(place="boundary", d=d)["noise_active"]
    what = "log10 of n SNR^2/T at the boundary over its closed form for endless d"
    return [
        judge_equal(
            ("S3", study.name, scale, f"{what}, d={float(d):g}, {study.setting}"),
            mean_of(seeds),
            0.0,
            float(np.log10(NEAR)),
            note=f"not a claim of the paper; within a factor {NEAR:g}; {float(active.mean()):.3g} "
            f"of a sample's filters respond to its noise; {int(apart.notnull().sum())} of "
            f"{apart.size} rows have a boundary",
        )
    ]
