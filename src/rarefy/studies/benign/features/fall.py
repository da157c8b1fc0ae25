"""How fast the error falls with x = |S_k|^2 |u_k|^4/(|S_j| |A_k^T A_j|_F^2) (003 Theorem 1, 2(a)).

For equal classes x = |S| |u|^4/|A_k^T A_j|_F^2, and the theorem says error <= (K - 1) exp(-c_1 x)
for x >= C_1, with absolute constants, read as 4 and 1/4. Read twice: one c_1 lies above all errors;
and the squared separation, which a factor in front of the exponential cannot disturb, grows at
least linearly with x, through |S| and through |u|.
"""

from __future__ import annotations

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.measure.separation import Mask, exponents
from rarefy.measure.statistics import bootstrap_interval, judge_bound
from rarefy.studies.benign.constants import READ
from rarefy.studies.benign.features.map import FeatureMap
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming

SHORT = 0.1
"""Part of an exponent by which a fit over a decade or two may fall short of "at least"; less than
the quarter granted to exponents elsewhere, because x is exact here."""
SAID = "separation: lead, in standard deviations, of the right one of K normal scores that err so"
FEWEST = 4
"""Cells under which no law is fitted."""


def fall_verdicts(here: FeatureMap, named: Naming, primary: bool) -> list[Verdict]:
    found = [_constant(here, named, "B3.1" if primary else "B3")]
    return [*found, *_exponents(here, named)] if primary else found


def _premise(here: FeatureMap) -> str:
    """Why Theorem 1 says nothing here; empty where it speaks."""
    region = here.ratio >= READ.features
    if not region.any():
        return f"x is below {READ.features:g} on the whole grid"
    return here.untrained(region)


def _constant(here: FeatureMap, named: Naming, claim: str) -> Verdict:
    there = here.counted(READ.features)
    x = here.ratio[there]
    note = "no cell has errors enough to count"
    if x.size:
        error = here.mean_error()[there]
        note = (
            f"{there.sum()} cells with errors enough to count, x {x.min():.3g} to {x.max():.3g}, "
            f"error {error.max():.2g} to {error.min():.2g}"
        )
    verdict = judge_bound(
        named(
            claim, f"largest c_1 with error at most (K-1) exp(-c_1 x) where x >= {READ.features:g}"
        ),
        bootstrap_interval(here.error, lambda error: here.largest_constant(error, there))
        if x.size
        else np.empty(0),
        READ.c_1,
        "at_least",
        note=note,
    )
    return undecided(verdict, _premise(here))


def _exponents(here: FeatureMap, named: Naming) -> list[Verdict]:
    cells: Mask = here.measured(READ.features)
    log_size = np.broadcast_to(np.log(here.size)[:, None], here.ratio.shape)
    log_strength = np.broadcast_to(np.log(here.strength), here.ratio.shape)
    enough = cells.sum() >= FEWEST
    told = (here.classes, here.study.test_samples)
    found = (
        exponents(here.error, cells, "separation", *told, log_size, log_strength)
        if enough
        else (np.empty(0), np.empty(0))
    )
    verdicts = []
    for claim, name, fitted, least in (
        ("B3.2", "|S|", found[0], 1.0),
        ("B3.3", "|u|", found[1], 4.0),
    ):
        what = f"exponent of the squared separation in {name} where x >= {READ.features:g}"
        note = f"at least {least:g}, {SHORT:.0%} less allowed; {cells.sum()} cells; {SAID}"
        bound = least * (1 - SHORT)
        verdict = judge_bound(named(claim, what), fitted, bound, "at_least", note=note)
        verdicts.append(undecided(verdict, _premise(here)))
    return verdicts
