"""Verdicts of ``regimes-at-scale``: what the two papers' theorems say, at the largest dimension.
All are the question of another study under another choice (every size and number of classes at its
own threshold, in 10^9 dimensions); smaller dimensions are in the table "seen-from"."""

from __future__ import annotations

import math
import weakref

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.noise_claims import noise_statements
from rarefy.studies.scale.regimes.rows import laid_out
from rarefy.studies.scale.regimes.signal_claims import signal_statements
from rarefy.studies.scale.regimes.statement import DELTA, Statement

_last: list[tuple[RegimesExperiment, weakref.ref[xr.Dataset], list[list[Statement]]]] = []
"""A picture and a table ask for the same statements."""


def statements_by_d(experiment: RegimesExperiment, results: xr.Dataset) -> list[list[Statement]]:
    """Each statement at all d, in order of d; of results as they were read."""
    for known, read, found in _last:
        if known == experiment and read() is results:
            return found
    ordered = laid_out(results)
    by_d = [_at(experiment, ordered.sel(d=d)) for d in ordered["d"].values]
    _last[:] = [(experiment, weakref.ref(results), [list(one) for one in zip(*by_d, strict=True)])]
    return _last[0][2]


def _at(experiment: RegimesExperiment, here: xr.Dataset) -> list[Statement]:
    return [*signal_statements(experiment, here), *noise_statements(experiment, here)]


def verdicts(experiment: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = laid_out(results).isel(d=-1)
    d = float(here["d"])
    named = Naming(experiment, scale, f"d={d:g}: ", f", {experiment.setting}")
    unmet = _too_low(experiment, d)
    return [
        undecided(one.judged(named), unmet if one.claim.startswith("S") else "")
        for one in _at(experiment, here)
    ]


def _too_low(experiment: RegimesExperiment, d: float) -> str:
    """002 Condition 4.1's line on d, its Theta(512 alpha^2) read as 1."""
    classes = max(experiment.classes)
    n = max(experiment.size) * classes
    least = classes * n**2 * math.log(4 * n**2 / DELTA)
    return "" if d >= least else f"d is below T n^2 log(4 n^2/delta) = {least:.2g}"
