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

from typing import Any

import numpy as np
import xarray as xr

from rarefy.studies.benign.constants import READ
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.questions import question_of
from rarefy.studies.scale.regimes.rows import (
    Boundaries,
    by_question,
    exponent,
    level_of,
    log10,
    words_of,
)
from rarefy.studies.scale.regimes.statement import DELTA, FITTED, FLAT, Statement, all_of, share_of
from rarefy.studies.topk.regimes.boundary import HALF, of_chance

SIDES = {"side": "on the filters' side", "tail": "on both sides"}
"""Which samples a path's error is measured on, in words."""


def noise_statements(study: RegimesExperiment, here: xr.Dataset) -> list[Statement]:
    """``here``: the rows of one d."""
    found: list[Statement] = []
    words = words_of(here, "feature")
    if words:
        found += [*_feature(study, Boundaries(here, words)), _harmful(study, here, words[0])]
    for path in SIDES:
        words = lengths_of(here, path)
        found += _tail(study, Boundaries(here, words), SIDES[path]) if words else []
    return found


def lengths_of(results: xr.Dataset, path: str) -> list[str]:
    """Questions of a tail's path; L = 0: all data, of which 2(b) says nothing."""
    return [word for word in words_of(results, path) if question_of(word).number > 0]


def log_odds(study: RegimesExperiment, here: xr.Dataset, word: str) -> xr.DataArray:
    """log(K/level), (classes,): c_1 x or c_2 L^2 Gamma where the bound (K - 1) exp(-.) has fallen
    to the level's share of chance, 1 - 1/K."""
    odds = here["classes"] / level_of(study, question_of(word))
    found: xr.DataArray = xr.apply_ufunc(np.log, odds)
    return found


def bound_at(study: RegimesExperiment, here: xr.Dataset, word: str) -> xr.DataArray:
    """The x or Gamma by which Theorem 1 has the error at the level, (classes,)."""
    question, odds = question_of(word), log_odds(study, here, word)
    if question.path == "feature":
        return xr.apply_ufunc(np.maximum, READ.features, odds / READ.c_1)
    return xr.apply_ufunc(np.maximum, READ.tail, odds / (READ.c_2 * question.number**2))


def _in_time(study: RegimesExperiment, found: Boundaries) -> xr.DataArray:
    """Which rows have their boundary by then."""
    bounds = by_question(found.words, lambda word: bound_at(study, found.results, word))
    return 10**found.place <= bounds


def _columns(here: xr.Dataset) -> dict[str, xr.DataArray]:
    return {"|S|": log10(here["size"]), "K": log10(here["classes"])}


def _feature(study: RegimesExperiment, found: Boundaries) -> list[Statement]:
    here, place, columns = found.results, found.place, _columns(found.results)
    few: dict[str, Any] = {"lost": found.lost, "unfitted": found.unfitted(study)}
    constant = place - log10(by_question(found.words, lambda word: log_odds(study, here, word)))
    by_level = ", ".join(
        f"{exponent(constant.sel(question=word), columns, 'K').value:.2f} ({word})"
        for word in found.words
    )
    early = _in_time(study, found)
    return [
        Statement(
            "B3",
            "exponent of x* in |S|",
            exponent(place, columns, "|S|"),
            0.0,
            FLAT,
            note=f"x* is {found.typical:.3g} in the geometric mean; {found.note}",
            **few,
        ),
        Statement(
            "B3",
            "exponent of x*/log(K/level) in K",
            exponent(constant, columns, "K"),
            0.0,
            FLAT,
            one_sided=True,
            note=f"the bound is a sum over K - 1 classes; {by_level}; {found.note}",
            **few,
        ),
        Statement(
            "B3",
            f"error at its level by x = {1 / READ.c_1:g} log(K/level)",
            share_of(early),
            1 - DELTA,
            note=f"share of {early.size} rows; constants read as {READ.features:g} and "
            f"{READ.c_1:g}; {found.note}",
        ),
    ]


def _harmful(study: RegimesExperiment, here: xr.Dataset, word: str) -> Statement:
    """Statement 3 at the lower end of the feature's path: overfitted, and of no use."""
    end = here.sel(question=word, place="low")
    low = float(end["log_low"].max())
    what = f"x = {10**low:g}, Gamma = 1: error at least half of chance, though fitted"
    parts = {
        FITTED: end["train_loss"] <= study.epsilon,
        "test error": of_chance(end, "test_error") >= HALF,
    }
    return all_of("B5", what, parts)


def _tail(study: RegimesExperiment, found: Boundaries, side: str) -> list[Statement]:
    early = _in_time(study, found)
    lengths = ", ".join(f"{question_of(word).number:g}" for word in found.words)
    return [
        Statement(
            "B4",
            f"exponent of Gamma* in |S|, tail {side}",
            exponent(found.place, _columns(found.results), "|S|"),
            0.0,
            FLAT,
            one_sided=True,
            note=f"Gamma* is {found.typical:.3g} in the geometric mean, L = {lengths}; "
            f"{found.note}",
            lost=found.lost,
            unfitted=found.unfitted(study),
        ),
        Statement(
            "B4",
            f"error at its level by Gamma = {1 / READ.c_2:g} log(K/level)/L^2, or {READ.tail:g}, "
            f"tail {side}",
            share_of(early),
            1 - DELTA,
            note=f"share of {early.size} rows, L = {lengths}; constants read as {READ.tail:g} and "
            f"{READ.c_2:g}; {found.note}",
        ),
    ]
