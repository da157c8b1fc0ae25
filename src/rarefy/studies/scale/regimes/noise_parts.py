"""What 003 Theorem 1 says at one dimension, part by part.

    B3  2(a): error at most (K - 1) exp(-c_1 x) from x = C_1 on. With statement 3 the boundary x* is
        of order 1 whatever |S|; it may grow with K and with a smaller error like log(K/level),
        where (K - 1) exp(-c_1 x) is the level's share of chance
    B4  2(b), the same in L^2 Gamma. No statement bounds the error of long-tailed data from below:
        Gamma* must not grow with |S|, and may fall
    B5  statement 3 at the lower end of the feature's road

Large constants are read as 4, small ones as 1/4 (``benign._constants.READ``).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.studies.benign.constants import READ
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.part import DELTA, FITTED, FLAT, Part, all_of, by_seed
from rarefy.studies.scale.regimes.questions import question_of
from rarefy.studies.scale.regimes.rows import (
    beyond_note,
    boundaries_of,
    boundary_of,
    ends_of,
    exponent,
    level_of,
    log10,
    mean_of,
    on,
    share_beyond,
    share_unfitted,
    words_of,
)
from rarefy.studies.topk.regimes.boundary import HALF, of_chance

SIDES = {"side": "on the filters' side", "tail": "on both sides"}
"""Which samples a road's error is measured on, in words."""


def noise_parts(study: RegimesExperiment, here: xr.Dataset) -> list[Part]:
    """``here``: the rows of one d."""
    found: list[Part] = []
    if words_of(here, "feature"):
        found += [*_feature_boundary(study, here), _harmful(study, here)]
    for road in SIDES:
        found += _tail_boundary(study, here, road)
    return found


def log_odds(study: RegimesExperiment, here: xr.Dataset, word: str) -> xr.DataArray:
    """log(K/level), (classes,): c_1 x or c_2 L^2 Gamma where the bound (K - 1) exp(-.) has fallen
    to the level's share of chance, 1 - 1/K."""
    found: xr.DataArray = xr.apply_ufunc(
        np.log, here["classes"] / level_of(study, question_of(word))
    )
    return found


def bound_at(study: RegimesExperiment, here: xr.Dataset, word: str) -> xr.DataArray:
    """The x or Gamma by which Theorem 1 has the error at the level, (classes,)."""
    question, odds = question_of(word), log_odds(study, here, word)
    if question.road == "feature":
        return xr.apply_ufunc(np.maximum, READ.features, odds / READ.c_1)
    return xr.apply_ufunc(np.maximum, READ.tail, odds / (READ.c_2 * question.number**2))


def _in_time(study: RegimesExperiment, here: xr.Dataset, words: list[str]) -> xr.DataArray:
    """Which rows have their boundary by then."""
    return xr.concat(
        [10 ** boundary_of(here, word) <= bound_at(study, here, word) for word in words],
        dim="question",
    )


def _feature_boundary(study: RegimesExperiment, here: xr.Dataset) -> list[Part]:
    words = words_of(here, "feature")
    place = boundaries_of(here, words)
    columns = {"|S|": log10(here["size"]), "K": log10(here["classes"])}
    note, lost = beyond_note(here, words), share_beyond(here, words)
    unfitted = share_unfitted(study, here, words)
    odds = xr.concat([log_odds(study, here, word) for word in words], dim="question")
    constant = place - log10(odds.assign_coords(question=words))
    by_level = ", ".join(
        f"{exponent(constant.sel(question=word), columns, 'K').value:.2f} ({word})"
        for word in words
    )
    early = _in_time(study, here, words)
    typical = float(10 ** place.mean())
    return [
        Part(
            "B3",
            "exponent of x* in |S|",
            exponent(place, columns, "|S|"),
            0.0,
            FLAT,
            note=f"x* is {typical:.3g} in the geometric mean; {note}",
            lost=lost,
            unfitted=unfitted,
        ),
        Part(
            "B3",
            "exponent of x*/log(K/level) in K",
            exponent(constant, columns, "K"),
            0.0,
            FLAT,
            one_sided=True,
            note=f"the bound is a sum over K - 1 classes; {by_level}; {note}",
            lost=lost,
            unfitted=unfitted,
        ),
        Part(
            "B3",
            f"error at its level by x = {1 / READ.c_1:g} log(K/level)",
            mean_of(by_seed(early)),
            1 - DELTA,
            note=f"share of {early.size} rows; constants read as {READ.features:g} and "
            f"{READ.c_1:g}; {note}",
        ),
    ]


def harmful(study: RegimesExperiment, here: xr.Dataset) -> dict[str, xr.DataArray]:
    """Statement 3 at the lower end of the feature's road: overfitted, and of no use."""
    end = on(here, words_of(here, "feature")[0]).sel(place="low")
    return {
        FITTED: end["train_loss"] <= study.epsilon,
        "test error": of_chance(end, "test_error") >= HALF,
    }


def _harmful(study: RegimesExperiment, here: xr.Dataset) -> Part:
    low = ends_of(here, words_of(here, "feature")[0])[0]
    what = (
        f"x = {10 ** float(low.max()):g}, Gamma = 1: error at least half of chance, though fitted"
    )
    return all_of("B5", what, harmful(study, here))


def _tail_boundary(study: RegimesExperiment, here: xr.Dataset, road: str) -> list[Part]:
    words = [word for word in words_of(here, road) if question_of(word).number > 0]
    if not words:  # L = 0: all data, of which 2(b) says nothing
        return []
    place = boundaries_of(here, words)
    columns = {"|S|": log10(here["size"]), "K": log10(here["classes"])}
    note, lost = beyond_note(here, words), share_beyond(here, words)
    unfitted = share_unfitted(study, here, words)
    early = _in_time(study, here, words)
    lengths = ", ".join(f"{question_of(word).number:g}" for word in words)
    return [
        Part(
            "B4",
            f"exponent of Gamma* in |S|, tail {SIDES[road]}",
            exponent(place, columns, "|S|"),
            0.0,
            FLAT,
            one_sided=True,
            note=f"Gamma* is {10 ** float(place.mean()):.3g} in the geometric mean, L = {lengths}; "
            f"{note}",
            lost=lost,
            unfitted=unfitted,
        ),
        Part(
            "B4",
            f"error at its level by Gamma = {1 / READ.c_2:g} log(K/level)/L^2, or {READ.tail:g}, "
            f"tail {SIDES[road]}",
            mean_of(by_seed(early)),
            1 - DELTA,
            note=f"share of {early.size} rows, L = {lengths}; constants read as {READ.tail:g} and "
            f"{READ.c_2:g}; {note}",
        ),
    ]
