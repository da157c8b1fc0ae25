"""The picture of how far a boundary moves with the level of the error and with L."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.statistics import mean_band
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.laws import tail_yardstick, yardstick
from rarefy.studies.scale.regimes.noise_parts import bound_at, log_odds
from rarefy.studies.scale.regimes.questions import question_of
from rarefy.studies.scale.regimes.rows import boundaries_of, log10, words_of


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


def _points(label: str, x: np.ndarray, logs: np.ndarray, role: str) -> Curve:
    band = mean_band(logs)
    return Curve(label, x, 10**band.mean, 10**band.low, 10**band.high, role)


def _levels(study: RegimesExperiment, last: xr.Dataset) -> Lines | None:
    words = words_of(last, "feature")
    if not words:
        return None
    words = sorted(words, key=lambda word: -question_of(word).number)
    place = boundaries_of(last, words).mean("size")
    square = log10(yardstick(study, last, words))
    curves, bounds = [], []
    for classes in last["classes"].values:
        here = place.sel(classes=classes).transpose("seed", "question").values
        x = np.array([float(log_odds(study, last, word).sel(classes=classes)) for word in words])
        curves.append(_points(f"K = {classes}", x, here, f"classes {classes}"))
        law = square.sel(classes=classes).values
        curves.append(_through(f"normal scores, K = {classes}", x, here, law, f"classes {classes}"))
        bounds += [
            (at, float(bound_at(study, last, word).sel(classes=classes)))
            for at, word in zip(x, words, strict=True)
        ]
    x, y = np.array(sorted(bounds)).T
    curves.append(Curve("Theorem 1, 2(a)", x, y, role="bound", style="dotted"))
    return Lines(
        curves,
        "log(K/level): smaller errors to the right",
        "x at the boundary, x*",
        "Gamma = 1: x at which the error is at its level",
        y_log=True,
    )


def _through(label: str, x: np.ndarray, logs: np.ndarray, law: np.ndarray, role: str) -> Curve:
    """The law, moved so that it meets the measured values at their middle."""
    middle = len(x) // 2
    y = law - law[middle] + float(np.nanmean(logs[:, middle]))
    return Curve(label, x, 10**y, role=role, style="dashed")


def _lengths(study: RegimesExperiment, last: xr.Dataset) -> Lines | None:
    words = [word for word in words_of(last, "side") if question_of(word).number > 0]
    if not words:
        return None
    words = sorted(words, key=lambda word: question_of(word).number)
    x = np.array([question_of(word).number for word in words])
    place = log10(10 ** boundaries_of(last, words) - 1).mean("size")
    square = log10(tail_yardstick(study, last, words))
    curves, bound = [], np.zeros(len(x))
    for classes in last["classes"].values:
        here = place.sel(classes=classes).transpose("seed", "question").values
        curves.append(_points(f"K = {classes}", x, here, f"classes {classes}"))
        law = square.sel(classes=classes).values
        curves.append(_through(f"normal scores, K = {classes}", x, here, law, f"classes {classes}"))
        limits = [float(bound_at(study, last, word).sel(classes=classes)) for word in words]
        bound = np.maximum(bound, np.array(limits) - 1)
    curves.append(Curve("Theorem 1, 2(b)", x, bound, role="bound", style="dotted"))
    return Lines(
        curves,
        "length of the tail, L (on the side to which the class's filters point)",
        "Gamma* - 1",
        f"No feature: Gamma at which the error beyond L is {study.tail_level:g} of chance",
        x_log=True,
        y_log=True,
    )
