"""How far a boundary moves with the level of the error (B3) and with the tail's length L (B4).

Bounds hold with any constant, and exponents can be read only where a range is long against the
constant. Normal scores obey both bounds, and yet over levels that can be measured their log error
is less than linear in x and in L^2 Gamma. So each exponent is judged as claimed, and by that law,
whose separation squared (2(a)) and strength squared (2(b)) stand for log(1/error). In many
dimensions special eigenvalues are (rank (Gamma - 1))^(1/4), and the strength squared is
proportional to Gamma - 1, which is 0 without class-dependent noise; Gamma itself never is.

Both yardsticks are those of ``benign-features`` and ``benign-tail`` and were taken over before any
result; that levels count only from a C_1 on, as there, came after a first look at small runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rarefy.core.contracts import Verdict
from rarefy.measure.separation import separation
from rarefy.measure.statistics import Interval, Slope, judge_bound
from rarefy.studies.benign.features.fall import SHORT
from rarefy.studies.benign.features.map import FITTED_FROM
from rarefy.studies.benign.tail.claims import EXPONENT as LINEAR
from rarefy.studies.kit.reading import Naming
from rarefy.studies.scale.questions import question_of
from rarefy.studies.scale.regimes import rows
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.noise_claims import SIDES, lengths_of, log_odds
from rarefy.studies.scale.regimes.rows import Boundaries, log10
from rarefy.studies.scale.regimes.statement import FLAT, Statement
from rarefy.theory.tail_law import strength

NONE = Slope(np.nan, np.nan, np.nan, 0, 0)


def _along(place: xr.DataArray, by: xr.DataArray) -> Slope:
    """Exponent of ``place`` in ``by``, (question, classes), at a fixed number of classes."""
    classes = log10(by["classes"]).broadcast_like(by)
    return rows.exponent(place, {"by": log10(by), "K": classes}, "by")


def _typical(large: xr.Dataset, words: Sequence[str], name: str) -> str:
    if not large.sizes["d"]:
        return "no large d"
    values = ", ".join(f"{Boundaries(large, [word]).typical:.3g} ({word})" for word in words)
    return f"{name} is {values}; {Boundaries(large, words).note}"


def _from(large: xr.Dataset, words: Sequence[str], least: float) -> list[str]:
    """Questions whose boundary is at least this in the mean: below it the theorem does not
    speak."""
    known = large.sizes["d"] > 0
    return [word for word in words if known and Boundaries(large, [word]).typical >= least]


def _by_question(results: xr.Dataset, words: Sequence[str], values: ArrayLike) -> xr.DataArray:
    axes = {"question": list(words), "classes": results["classes"].values}
    return xr.DataArray(np.asarray(values), axes)


# ------------------------------------------------------------------------------- level of the error


def yardstick(study: RegimesExperiment, results: xr.Dataset, words: Sequence[str]) -> xr.DataArray:
    """Separation squared of K normal scores that err as often as the level says, (question,
    classes)."""
    levels = [rows.level_of(study, question_of(word)) for word in words]
    values = [
        [float(separation(one * (1 - 1 / k), int(k))) for k in results["classes"].values]
        for one in levels
    ]
    return _by_question(results, words, np.square(values))


def level_statements(study: RegimesExperiment, large: xr.Dataset) -> list[Statement]:
    """From each of the values on that C_1 may have."""
    every, found = rows.words_of(large, "feature"), []
    for least in FITTED_FROM if every else ():
        words = _from(large, every, least)
        literal, lawful, law, lost = NONE, NONE, np.nan, 0.0
        if len(words) > 1:
            known = Boundaries(large, words)
            place, lost = known.place.mean("d"), known.lost
            odds = rows.by_question(words, lambda word: log_odds(study, large, word))
            square = yardstick(study, large, words)
            literal, lawful = _along(place, odds), _along(place, square)
            law = _along(log10(square).expand_dims(seed=1), odds).value
        said = f"{_typical(large, every, 'x*')}; {len(words)} levels with x* from {least:g} on"
        if np.isfinite(law):
            said += f"; normal scores, which obey the bound, have {law:.3g} in log(K/level)"
        for what, slope, tolerance in (
            ("log(K/level)", literal, 0.0),
            ("the squared separation of normal scores", lawful, SHORT),
        ):
            name = f"exponent of x* in {what}, from x* = {least:g} on"
            found.append(Statement("B3", name, slope, 1.0, tolerance, True, said, lost))
    return found


# ------------------------------------------------------------------------------- length of the tail


def tail_yardstick(
    study: RegimesExperiment, results: xr.Dataset, words: Sequence[str]
) -> xr.DataArray:
    """Strength squared of a network whose error at |zeta| is chance times 2 Q(strength |zeta|) and
    at the level beyond L, (question, classes)."""
    lengths = np.array([question_of(word).number for word in words])
    values = [
        strength(np.full(len(words), study.tail_level * chance), lengths, float(chance)) ** 2
        for chance in 1 - 1 / results["classes"].values
    ]
    return _by_question(results, words, np.array(values).T)


def length_verdicts(study: RegimesExperiment, large: xr.Dataset, named: Naming) -> list[Verdict]:
    words = lengths_of(large, "side")
    if not words:
        return []
    lawful = NONE
    if large.sizes["d"] and len(words) > 1:
        excess = log10(10 ** Boundaries(large, words).place - 1).mean("d")
        lawful = _along(excess, tail_yardstick(study, large, words))
    note, tail = _typical(large, words, "Gamma*"), f"tail {SIDES['side']}"
    literal = [_length(large, words, least, tail, note).judged(named) for least in FITTED_FROM]
    what = "exponent of Gamma* - 1 in the squared strength at which error beyond L is at its level"
    identity, said = named("B4", f"{what}, {tail}"), "1: linear in L^2 Gamma by the yardstick"
    found = Interval(lawful.value, lawful.low, lawful.high, lawful.n_samples)
    note = f"{said}, less a quarter is allowed; {note}"
    return [*literal, judge_bound(identity, found, LINEAR, "at_least", note=note)]


def _length(
    large: xr.Dataset, words: Sequence[str], least: float, tail: str, note: str
) -> Statement:
    """Theorem 1, 2(b), speaks from Gamma = C_2 on: lengths whose Gamma* is smaller are left out,
    for each value that C_2 may have."""
    far = _from(large, words, least)
    slope, lost = NONE, 0.0
    if len(far) > 1:
        known = Boundaries(large, far)
        length = xr.DataArray([question_of(word).number for word in far], {"question": far})
        slope = rows.exponent(known.place.mean("d"), {"L": log10(length)}, "L")
        lost = known.lost
    what = f"exponent of Gamma* in L, from Gamma* = {least:g} on, {tail}"
    note = f"{note}; {len(far)} lengths with Gamma* from {least:g} on"
    return Statement("B4", what, slope, -2.0, FLAT, True, note, lost)
