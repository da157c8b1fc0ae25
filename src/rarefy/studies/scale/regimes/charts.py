"""The picture of ``regimes-at-scale``: boundaries and shares of rows against d."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.statistics import mean_band
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.scale.questions import TAIL_ENDS, question_of
from rarefy.studies.scale.regimes.claims import statements_by_d
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.rows import laid_out, words_of
from rarefy.studies.scale.regimes.statement import Statement

D = "coordinates of a patch, d"


def pictures(experiment: RegimesExperiment, results: xr.Dataset) -> list[Picture]:
    return [_boundaries(experiment, laid_out(results), statements_by_d(experiment, results))]


def _over_d(label: str, logs: xr.DataArray, role: str | None = None) -> Curve:
    """Geometric mean over all but d, with its 95 % interval; logs: log10."""
    others = [dim for dim in logs.dims if dim not in ("seed", "d")]
    band = mean_band(by_seed(logs.mean(others), "d"))
    return Curve(label, logs["d"].values, 10**band.mean, 10**band.low, 10**band.high, role)


def _boundaries(
    study: RegimesExperiment, results: xr.Dataset, by_d: list[list[Statement]]
) -> Picture:
    ratios = (_signal(results), _feature(results), _tail(study, results))
    panels = [panel for panel in ratios if panel is not None]
    return Picture(
        "boundaries",
        "Where the regimes meet, from a hundred dimensions to a billion",
        "The theorems know d and n only through the ratios on the axes: curves should be level, "
        "and those of several class sizes (n/T, |S|) lie on each other, from some d on. What 002 "
        "leaves open is the stretch between the dotted lines; x = |S| |u|^4/|A_k^T A_j|_F^2. "
        "Below, noise alone, for samples at least L out along their class's special direction: on "
        "the side to which its filters point, or on both sides. Rows without a boundary are drawn "
        f"at the end of the range (Gamma = {10 ** TAIL_ENDS[1]:.0f}) and counted in the last "
        "panel, beside the share of rows that do all a theorem says. Geometric means over K or T = "
        f"{_listed(results['classes'])} classes, 95 % intervals of {results.sizes['seed']} seeds.",
        [*panels, _shares(results, by_d)],
    )


def _listed(axis: xr.DataArray) -> str:
    return ", ".join(f"{value:g}" for value in axis.values)


def _signal(results: xr.Dataset) -> Lines | None:
    words = words_of(results, "signal")
    if not words:
        return None
    d = results["d"].values
    here = results.sel(question=words[0])
    low, high = (10 ** float(here[end].mean()) for end in ("log_low", "log_high"))
    ends = {"Theorem 4.2: signal from here on": high, "Theorem 4.3: noise up to here": low}
    curves = [
        Curve(label, d, np.full(len(d), value), role="theory", style="dotted")
        for label, value in ends.items()
    ]
    places = here["log_boundary"]
    curves += [_over_d(f"n/T = {size}", places.sel(size=size)) for size in results["size"].values]
    title = f"002: test loss falls to {question_of(words[0]).number:g} log T"
    return Lines(curves, D, "n SNR^2/T, boundary", title, x_log=True, y_log=True)


def _feature(results: xr.Dataset) -> Lines | None:
    words = words_of(results, "feature")
    if not words:
        return None
    curves = []
    for word, size in product(words, results["size"].values[[0, -1]]):
        number, places = question_of(word).number, results["log_boundary"]
        label, place = f"{number:g} of chance, |S| = {size}", places.sel(question=word, size=size)
        curves.append(_over_d(label, place, f"x* {number:g}"))
    title = "003, Gamma = 1: test error falls to a share of chance"
    return Lines(curves, D, "x at the boundary, x*", title, x_log=True, y_log=True)


def _tail(study: RegimesExperiment, results: xr.Dataset) -> Lines | None:
    words = words_of(results, "side") + words_of(results, "tail")
    if not words:
        return None
    curves = []
    for word in words:
        question = question_of(word)
        one = question.path == "side"
        length = f"L = {question.number:g}, {'one side' if one else 'both sides'}"
        role = f"L {question.number:g}" if one else "noise"
        curves.append(_over_d(length, results["log_boundary"].sel(question=word), role))
    title = f"003, no feature: error beyond L falls to {study.tail_level:g} of chance"
    return Lines(curves, D, "Gamma at the boundary", title, x_log=True, y_log=True)


SHARES = {
    "all of Theorem 4.2": "all of Theorem 4.2 (S1)",
    "all of Theorem 4.3": "all of Theorem 4.3 (S2)",
    "text: generalises": "error high at SNR = 1/n (S2)",
    "x = ": "harmful at x small (B5)",
}
"""How statements that are shares of rows begin, and their labels."""


def _shares(results: xr.Dataset, by_d: list[list[Statement]]) -> Lines:
    """Shares of rows that do what a theorem says, and of those without a boundary."""
    d = results["d"].values
    curves = [
        _estimates(label, d, each)
        for each, (start, label) in product(by_d, SHARES.items())
        if each[0].what.startswith(start)
    ]
    for word in words_of(results, "tail"):
        lost = (results["outside"].sel(question=word) != 0).mean(["size", "classes"])
        label = f"no boundary, L = {question_of(word).number:g}, both sides"
        curves.append(mean_curve(label, d, by_seed(lost, "d"), "noise", "dashed"))
    return Lines(curves, D, "share of rows", "What is seen of the theorems", x_log=True)


def _estimates(label: str, d: np.ndarray, each: Sequence[Statement]) -> Curve:
    ends = ([getattr(one.estimate, end) for one in each] for end in ("low", "high"))
    low, high = (np.array(end) for end in ends)
    return Curve(label, d, np.array([one.value for one in each]), low, high)
