"""What 003 Theorem 1 says at one dimension, part by part.

    B3  2(a): error at most (K - 1) exp(-c_1 x) from x = C_1 on. With statement 3 the boundary x* is
        of order 1 whatever |S|; it may grow with K and with a smaller error like log(K/level),
        where (K - 1) exp(-c_1 x) is the level's share of chance
    B4  2(b), the same in L^2 Gamma. No statement bounds the error of long-tailed data from below:
        Gamma* must not grow with |S|, and may fall
    B5  statement 3 at the lower end of the feature's path

Large constants are read as 4, small ones as 1/4 (``benign.constants.READ``).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.studies.benign.constants import READ
from rarefy.studies.kit.arrays import known
from rarefy.studies.scale.questions import question_of
from rarefy.studies.scale.regimes import rows
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.rows import Boundaries, log10
from rarefy.studies.scale.regimes.statement import DELTA, FITTED, FLAT, Statement, all_of, share_of
from rarefy.studies.topk.regimes.boundary import HALF, of_chance

SIDES = {"side": "on the filters' side", "tail": "on both sides"}
"""Which samples a path's error is measured on, in words."""


def noise_statements(study: RegimesExperiment, here: xr.Dataset) -> list[Statement]:
    """``here``: the rows of one d."""
    found: list[Statement] = []
    words = rows.words_of(here, "feature")
    if words:
        found += [*_feature(study, Boundaries(here, words)), _harmful(study, here, words[0])]
    for path in SIDES:
        words = lengths_of(here, path)
        found += _tail(study, Boundaries(here, words), SIDES[path]) if words else []
    return found


def lengths_of(results: xr.Dataset, path: str) -> list[str]:
    """Questions of a tail's path; L = 0: all data, of which 2(b) says nothing."""
    return [word for word in rows.words_of(results, path) if question_of(word).number > 0]


def log_odds(study: RegimesExperiment, here: xr.Dataset, word: str) -> xr.DataArray:
    """log(K/level), (classes,): c_1 x or c_2 L^2 Gamma where the bound (K - 1) exp(-.) has fallen
    to the level's share of chance, 1 - 1/K."""
    return xr.apply_ufunc(np.log, here["classes"] / rows.level_of(study, question_of(word)))


def bound_at(study: RegimesExperiment, here: xr.Dataset, word: str) -> xr.DataArray:
    """The x or Gamma by which Theorem 1 has the error at the level, (classes,)."""
    question, odds = question_of(word), log_odds(study, here, word)
    if question.path == "feature":
        return xr.apply_ufunc(np.maximum, READ.features, odds / READ.c_1)
    return xr.apply_ufunc(np.maximum, READ.tail, odds / (READ.c_2 * question.number**2))


def _early(
    study: RegimesExperiment, found: Boundaries, claim: str, what: str, of: str, read: str
) -> Statement:
    """Rows have their boundary by then; ``of``: which rows, ``read``: how that is read."""
    bounds = rows.by_question(found.words, lambda word: bound_at(study, found.results, word))
    early = known(10**found.place <= bounds, found.place)
    note = f"share of {int(early.count())} rows{of}; {read}"
    return Statement(claim, what, share_of(early), 1 - DELTA, note=note)


def _columns(here: xr.Dataset) -> dict[str, xr.DataArray]:
    return {"|S|": log10(here["size"]), "K": log10(here["classes"])}


def _feature(study: RegimesExperiment, found: Boundaries) -> list[Statement]:
    columns, few = _columns(found.results), (found.lost, found.unfitted(study))
    slope = rows.exponent(found.place, columns, "|S|")
    note = f"x* is {found.typical:.3g} in the geometric mean; {found.note}"
    what = f"error at its level by x = {1 / READ.c_1:g} log(K/level)"
    read = f"constants read as {READ.features:g} and {READ.c_1:g}; {found.note}"
    return [
        Statement("B3", "exponent of x* in |S|", slope, 0.0, FLAT, False, note, *few),
        _early(study, found, "B3", what, "", read),
    ]


def _harmful(study: RegimesExperiment, here: xr.Dataset, word: str) -> Statement:
    """Statement 3 at the lower end of the feature's path: overfitted, and of no use."""
    end = here.sel(question=word, place="low")
    low = float(end["log_low"].max())
    what = f"x = {10**low:g}, Gamma = 1: error at least half of chance, though fitted"
    loss, error = end["train_loss"], of_chance(end, "test_error")
    parts = {FITTED: known(loss <= study.epsilon, loss), "test error": known(error >= HALF, error)}
    return all_of("B5", what, parts)


def _tail(study: RegimesExperiment, found: Boundaries, side: str) -> list[Statement]:
    lengths = f", L = {', '.join(f'{question_of(word).number:g}' for word in found.words)}"
    few = (found.lost, found.unfitted(study))
    what, columns = "exponent of Gamma* in |S|", _columns(found.results)
    slope = rows.exponent(found.place, columns, "|S|")
    note = f"Gamma* is {found.typical:.3g} in the geometric mean{lengths}; {found.note}"
    by = f"error at its level by Gamma = {1 / READ.c_2:g} log(K/level)/L^2, or {READ.tail:g}"
    read = f"constants read as {READ.tail:g} and {READ.c_2:g}; {found.note}"
    return [
        Statement("B4", f"{what}, tail {side}", slope, 0.0, FLAT, True, note, *few),
        _early(study, found, "B4", f"{by}, tail {side}", lengths, read),
    ]
