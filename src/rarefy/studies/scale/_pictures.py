"""Pictures of ``regimes-at-scale``: boundaries, exponents and shares against d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.statistics import mean_band
from rarefy.studies.scale._law_pictures import law_picture
from rarefy.studies.scale._over_d import closed_form
from rarefy.studies.scale._part import Part
from rarefy.studies.scale._questions import TAIL_ENDS, question_of
from rarefy.studies.scale._rows import boundary_of, ends_of, on, words_of
from rarefy.studies.scale._tables import parts_by_d

if TYPE_CHECKING:
    from rarefy.studies.scale.regimes_at_scale import RegimesAtScale

D = "coordinates of a patch, d"


def scale_pictures(study: RegimesAtScale, results: xr.Dataset) -> list[Picture]:
    results = results.sortby(["d", "size", "classes"])
    found = [_boundaries(study, results), _exponents(study, results), law_picture(study, results)]
    return [picture for picture in found if picture.panels]


def geometric(label: str, x: np.ndarray, logs: xr.DataArray, role: str | None = None) -> Curve:
    """Geometric mean over all but d, with the 95 % interval over seeds; logs: log10."""
    others = [dim for dim in logs.dims if dim not in ("seed", "d")]
    band = mean_band(logs.mean(others).transpose("seed", "d").values)
    return Curve(label, x, 10**band.mean, 10**band.low, 10**band.high, role)


# --------------------------------------------------------------------------------------- boundaries


def _boundaries(study: RegimesAtScale, results: xr.Dataset) -> Picture:
    panels = [
        panel
        for panel in (
            _signal(results),
            _feature(results),
            _tail(study, results),
            _shares(study, results),
        )
        if panel is not None
    ]
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
        panels,
    )


def _listed(axis: xr.DataArray) -> str:
    return ", ".join(f"{value:g}" for value in axis.values)


def _sizes(results: xr.Dataset) -> list[int]:
    return [int(size) for size in results["size"].values]


def _signal(results: xr.Dataset) -> Lines | None:
    words = words_of(results, "signal")
    if not words:
        return None
    d = results["d"].values
    place = boundary_of(results, words[0])
    low, high = (10 ** float(end.mean()) for end in ends_of(results, words[0]))
    curves = [
        _level("Theorem 4.2: signal from here on", d, high, "dotted"),
        _level("Theorem 4.3: noise up to here", d, low, "dotted"),
    ]
    both = closed_form(results)
    if both is not None and np.isfinite(both[1].isel(d=-1)).any():
        limit = 10 ** float(both[1].isel(d=-1).mean())
        curves.append(_level("closed form, endless d", d, limit))
    curves += [geometric(f"n/T = {size}", d, place.sel(size=size)) for size in _sizes(results)]
    share = question_of(words[0]).number
    return Lines(
        curves,
        D,
        "n SNR^2/T, boundary",
        f"002: test loss falls to {share:g} log T",
        x_log=True,
        y_log=True,
    )


def _level(label: str, d: np.ndarray, value: float, style: str = "dashed") -> Curve:
    return Curve(label, d, np.full(len(d), value), role="theory", style=style)


def _feature(results: xr.Dataset) -> Lines | None:
    words = words_of(results, "feature")
    if not words:
        return None
    d, curves = results["d"].values, []
    for word in words:
        place = boundary_of(results, word)
        for size in (_sizes(results)[0], _sizes(results)[-1]):
            label = f"{question_of(word).number:g} of chance, |S| = {size}"
            curves.append(
                geometric(label, d, place.sel(size=size), f"x* {question_of(word).number:g}")
            )
    return Lines(
        curves,
        D,
        "x at the boundary, x*",
        "003, Gamma = 1: test error falls to a share of chance",
        x_log=True,
        y_log=True,
    )


def _tail(study: RegimesAtScale, results: xr.Dataset) -> Lines | None:
    words = words_of(results, "side") + words_of(results, "tail")
    if not words:
        return None
    d, curves = results["d"].values, []
    for word in words:
        question = question_of(word)
        where = "one side" if question.road == "side" else "both sides"
        role = "noise" if question.road == "tail" else f"L {question.number:g}"
        curve = geometric(f"L = {question.number:g}, {where}", d, boundary_of(results, word), role)
        curves.append(curve)
    return Lines(
        curves,
        D,
        "Gamma at the boundary",
        f"003, no feature: error beyond L falls to {study.tail_level:g} of chance",
        x_log=True,
        y_log=True,
    )


def _shares(study: RegimesAtScale, results: xr.Dataset) -> Lines:
    """Shares of rows that do what a theorem says, and of those without a boundary."""
    d = results["d"].values
    short = {
        "all of Theorem 4.2": "all of Theorem 4.2 (S1)",
        "all of Theorem 4.3": "all of Theorem 4.3 (S2)",
        "text: generalises": "error high at SNR = 1/n (S2)",
        "x = ": "harmful at x small (B5)",
    }
    curves = []
    for part in parts_by_d(study, results):
        for start, label in short.items():
            if part[0].what.startswith(start):
                curves.append(_of_part(label, d, part))
    for word in words_of(results, "tail"):
        lost = (on(results, word)["outside"] != 0).mean(["size", "classes"])
        label = f"no boundary, L = {question_of(word).number:g}, both sides"
        curves.append(mean_curve(label, d, lost.transpose("seed", "d").values, "noise", "dashed"))
    return Lines(curves, D, "share of rows", "What is seen of the theorems", x_log=True)


def _of_part(
    label: str, d: np.ndarray, parts: Sequence[Part], role: str | None = None, style: str = "solid"
) -> Curve:
    low, high = (
        np.array([getattr(each.estimate, end) for each in parts]) for end in ("low", "high")
    )
    return Curve(label, d, np.array([each.value for each in parts]), low, high, role, style)


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
    (
        "003: boundary against the number of classes K",
        {"exponent of x*/log(K/level)": "x*/log(K/level)"},
    ),
)
"""Title of each panel, and how the names of its parts begin, with their labels."""


def _exponents(study: RegimesAtScale, results: xr.Dataset) -> Picture:
    d = results["d"].values
    parts = parts_by_d(study, results)
    panels = []
    for title, names in GROUPS:
        chosen = [
            (label, part)
            for start, label in names.items()
            for part in parts
            if part[0].what.startswith(start)
        ]
        curves = [_of_part(label, d, part) for label, part in chosen]
        if any(np.isfinite(curve.y).any() for curve in curves):
            theory = [_asked(d, group) for group in _by_goal([part[0] for _, part in chosen])]
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


def _by_goal(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts that ask for the same exponent have one line."""
    goals = sorted({part.goal for part in parts})
    return [[part for part in parts if part.goal == goal] for goal in goals]


def _asked(d: np.ndarray, parts: Sequence[Part]) -> Curve:
    """What an exponent is to be, with its tolerance as a band; a bound's band is above it only."""
    y, bound = np.full(len(d), parts[0].goal), all(part.one_sided for part in parts)
    label = f"{'at most' if bound else 'theory:'} {parts[0].goal:g}"
    wide = parts[0].tolerance
    return Curve(label, d, y, y if bound else y - wide, y + wide, role="theory", style="dashed")
