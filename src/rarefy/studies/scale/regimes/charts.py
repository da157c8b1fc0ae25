"""Pictures of ``regimes-at-scale``: boundaries, exponents and shares against d."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.scale.questions import TAIL_ENDS, question_of
from rarefy.studies.scale.regimes.claims import closed_form, statements_by_d
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.law_charts import geometric, law_picture
from rarefy.studies.scale.regimes.rows import laid_out, words_of
from rarefy.studies.scale.regimes.statement import Statement

D = "coordinates of a patch, d"


def pictures(experiment: RegimesExperiment, results: xr.Dataset) -> list[Picture]:
    results = laid_out(results)
    by_d = statements_by_d(experiment, results)
    found = [_boundaries(experiment, results, by_d), _exponents(results, by_d)]
    return [each for each in (*found, law_picture(experiment, results)) if each.panels]


def _over_d(label: str, logs: xr.DataArray, role: str | None = None) -> Curve:
    """Geometric mean over all but d."""
    others = [dim for dim in logs.dims if dim not in ("seed", "d")]
    return geometric(label, logs["d"].values, by_seed(logs.mean(others), "d"), role)


# --------------------------------------------------------------------------------------- boundaries


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
    curves = [_level(label, d, value, "dotted") for label, value in ends.items()]
    both = closed_form(results)
    if both is not None and np.isfinite(both[1].isel(d=-1)).any():
        limit = 10 ** float(both[1].isel(d=-1).mean())
        curves.append(_level("closed form, endless d", d, limit))
    places = here["log_boundary"]
    curves += [_over_d(f"n/T = {size}", places.sel(size=size)) for size in results["size"].values]
    title = f"002: test loss falls to {question_of(words[0]).number:g} log T"
    return Lines(curves, D, "n SNR^2/T, boundary", title, x_log=True, y_log=True)


def _level(label: str, d: np.ndarray, value: float, style: str = "dashed") -> Curve:
    return Curve(label, d, np.full(len(d), value), role="theory", style=style)


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


# ---------------------------------------------------------------------------------------- exponents

GROUPS: tuple[tuple[str, dict[str, str]], ...] = (
    ("002: gamma/rho against n SNR^2/T", {"exponent of gamma/rho": "measured"}),
    ("002: SNR at the boundary", {"exponent in n of": "in n", "exponent in T of": "in T"}),
    (
        "003: boundary against class size |S|",
        {
            "exponent of x* in |S|": "x*",
            "exponent of Gamma* in |S|, tail on the": "Gamma*, one side",
            "exponent of Gamma* in |S|, tail on both": "Gamma*, both sides",
        },
    ),
    ("003: boundary against the number of classes K", {"exponent of x*/log": "x*/log(K/level)"}),
)
"""Title of each panel, and how its statements begin, with their labels."""


def _exponents(results: xr.Dataset, by_d: list[list[Statement]]) -> Picture:
    d, panels = results["d"].values, []
    for title, names in GROUPS:
        chosen = [
            (label, each)
            for (start, label), each in product(names.items(), by_d)
            if each[0].what.startswith(start)
        ]
        curves = [_estimates(label, d, each) for label, each in chosen]
        if any(np.isfinite(curve.y).any() for curve in curves):
            firsts = [each[0] for _, each in chosen]
            theory = [
                _required(d, [one for one in firsts if one.goal == goal])
                for goal in sorted({one.goal for one in firsts})
            ]
            panels.append(Lines([*theory, *curves], D, "exponent", title, x_log=True))
    return Picture(
        "exponents",
        "How fast the boundaries move, and from which dimension on as the theorems say",
        f"Exponents fitted over |S| = {_listed(results['size'])} and K or T = "
        f"{_listed(results['classes'])}, a seed at a time; mean and 95 % interval of "
        f"{results.sizes['seed']} seeds. Dashed, with what is allowed about it: the theorems' "
        "exponents, and sqrt(T/n) for the SNR, which is where signal and noise held are equal. "
        "Bounds may be undercut ('at most'). A curve that joins its dashed line shows the d from "
        "which on the theorem's shape is seen.",
        panels,
    )


def _required(d: np.ndarray, alike: Sequence[Statement]) -> Curve:
    """What an exponent is to be, with its tolerance as a band; a bound's band is above it only.
    Statements that ask for the same have one line."""
    one, bound = alike[0], all(each.one_sided for each in alike)
    y = np.full(len(d), one.goal)
    label = f"{'at most' if bound else 'theory:'} {one.goal:g}"
    low = y if bound else y - one.tolerance
    return Curve(label, d, y, low, y + one.tolerance, role="theory", style="dashed")
