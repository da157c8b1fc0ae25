"""The picture of how far a boundary moves with the level of the error and with L."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.statistics import mean_band
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.scale.questions import question_of
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.law_claims import tail_yardstick, yardstick
from rarefy.studies.scale.regimes.noise_claims import bound_at, lengths_of, log_odds
from rarefy.studies.scale.regimes.rows import Boundaries, by_question, log10, words_of


def law_picture(study: RegimesExperiment, results: xr.Dataset) -> Picture:
    """At the largest d."""
    last = results.isel(d=-1)
    panels = [panel for panel in (_levels(study, last), _lengths(study, last)) if panel is not None]
    return Picture(
        "laws",
        "How much more is needed for a smaller error, and for a shorter tail",
        f"d = {float(last['d']):g}, mean over |S| = "
        f"{', '.join(f'{size:g}' for size in results['size'].values)} and "
        f"{results.sizes['seed']} seeds, 95 % intervals. Theorem 1 bounds the boundary from above, "
        "dotted with constants read as 4 and 1/4: points must lie below. Dashed: normal scores "
        "that err as often, passing through the middle point; they obey the bound, and what counts "
        "is that points rise (left) no faster and fall (right) no slower than these.",
        panels,
    )


def geometric(label: str, x: np.ndarray, logs: np.ndarray, role: str | None = None) -> Curve:
    """Geometric mean of (seed, point), with its 95 % interval; logs: log10."""
    band = mean_band(logs)
    return Curve(label, x, 10**band.mean, 10**band.low, 10**band.high, role)


def _beside_law(x: Mapping[int, np.ndarray], place: xr.DataArray, law: xr.DataArray) -> list[Curve]:
    """For each number of classes the measured values, (seed, question) in log10, and the law,
    moved so that it meets them at their middle."""
    curves = []
    for classes, at in x.items():
        logs = by_seed(place.sel(classes=classes), "question")
        role = f"classes {classes}"
        values, middle = log10(law).sel(classes=classes).values, len(at) // 2
        y = values - values[middle] + float(np.nanmean(logs[:, middle]))
        curves += [
            geometric(f"K = {classes}", at, logs, role),
            Curve(f"normal scores, K = {classes}", at, 10**y, role=role, style="dashed"),
        ]
    return curves


def _levels(study: RegimesExperiment, last: xr.Dataset) -> Lines | None:
    words = sorted(words_of(last, "feature"), key=lambda word: -question_of(word).number)
    if not words:
        return None
    odds = by_question(words, lambda word: log_odds(study, last, word))
    most = by_question(words, lambda word: bound_at(study, last, word))
    x = {classes: odds.sel(classes=classes).values for classes in last["classes"].values}
    place = Boundaries(last, words).place.mean("size")
    ends, limits = np.array(sorted(zip(odds.values.flat, most.values.flat, strict=True))).T
    bound = Curve("Theorem 1, 2(a)", ends, limits, role="bound", style="dotted")
    return Lines(
        [*_beside_law(x, place, yardstick(study, last, words)), bound],
        "log(K/level): smaller errors to the right",
        "x at the boundary, x*",
        "Gamma = 1: x at which the error is at its level",
        y_log=True,
    )


def _lengths(study: RegimesExperiment, last: xr.Dataset) -> Lines | None:
    words = sorted(lengths_of(last, "side"), key=lambda word: question_of(word).number)
    if not words:
        return None
    x = np.array([question_of(word).number for word in words])
    every = dict.fromkeys(last["classes"].values, x)
    place = log10(10 ** Boundaries(last, words).place - 1).mean("size")
    limits = np.array([float(bound_at(study, last, word).max()) for word in words])
    bound = Curve("Theorem 1, 2(b)", x, limits - 1, role="bound", style="dotted")
    return Lines(
        [*_beside_law(every, place, tail_yardstick(study, last, words)), bound],
        "length of the tail, L (on the side to which the class's filters point)",
        "Gamma* - 1",
        f"No feature: Gamma at which the error beyond L is {study.tail_level:g} of chance",
        x_log=True,
        y_log=True,
    )
