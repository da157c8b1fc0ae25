"""Pictures of ``benign-features``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.estimates import finite_mean
from rarefy.measure.separation import COUNTED, error_of, separation
from rarefy.studies.benign.constants import READ
from rarefy.studies.benign.features.experiment import FeaturesExperiment
from rarefy.studies.benign.features.map import FeatureMap, maps_of
from rarefy.studies.benign.maps import accuracy_map

SHOWN_RATIOS = (1.0, 4.0, 16.0)
"""Values of x whose lines are drawn over the maps."""


def pictures(study: FeaturesExperiment, results: xr.Dataset) -> list[Picture]:
    maps = maps_of(study, results)
    found = [_heat_maps(study, gamma, maps) for gamma in dict.fromkeys(here.gamma for here in maps)]
    fallen = [here for here in maps if here.schedule == "trained"] or maps
    return [*found, _fall(fallen)]


def _heat_maps(study: FeaturesExperiment, gamma: float, maps: list[FeatureMap]) -> Picture:
    here = [one for one in maps if one.gamma == gamma]
    n = len(here[0].error)
    noise = "noise of one kind for all classes" if gamma == 1 else "the setting of 003 Fig. 4a"
    return Picture(
        f"map-{gamma:g}",
        f"Accuracy over feature strength and class size at Gamma = {gamma:g}",
        f"Test accuracy, mean of {n} seeds; chance is {1 / here[0].classes:.2g}; {noise}. Lines: x "
        "= |S| |u|^4/|A_k^T A_j|_F^2 of Theorem 1, 2(a), constant along each. Where x is what "
        "counts, the level lines of accuracy run along them; where more samples do not help, they "
        "are upright.",
        [
            accuracy_map(
                xr.DataArray(
                    one.accuracy,
                    dims=("seed", "size", "strength"),
                    coords={"size": one.size, "strength": one.strength},
                ),
                "strength",
                "size",
                study.words(one.schedule),
                _contours(one),
            )
            for one in here
        ],
    )


def _contours(here: FeatureMap) -> list[Curve]:
    found = []
    for place, value in enumerate(SHOWN_RATIOS):
        # |u| at which x = value
        norm = (value * here.gram[0, 1] / here.size) ** 0.25
        there = (norm >= here.strength.min()) & (norm <= here.strength.max())
        if there.sum() > 1:
            style = ("solid", "dashed", "dotted")[place]
            at = (norm[there], here.size[there])
            found.append(Curve(f"x = {value:g}", *at, role="theory", style=style))
    return found


def _fall(maps: list[FeatureMap]) -> Picture:
    panels = [_against_x(here) for here in maps]
    first = maps[0]
    by_strength = Lines(
        [
            Curve(f"|S| = {size:g}", first.strength, _shown(first)[place], role=f"size {place}")
            for place, size in enumerate(first.size)
        ],
        "feature strength |u|",
        "test error",
        f"The same against |u| alone, Gamma = {first.gamma:g}",
        y_log=True,
    )
    n, tested = len(first.error), first.study.test_samples
    return Picture(
        "fall",
        "How the test error falls with the ratio of Theorem 1, 2(a)",
        f"Mean error of {n} seeds, {tested:,} fresh samples each. Right of the mark the error is "
        "to fall at least exponentially, which is a straight line here. Dashed: K normal scores of "
        "which the right one is ahead by sqrt(a x) standard deviations, a the median over the "
        "cells that can be measured; the theorem's bound follows from this law. Dotted: (K - 1) "
        "exp(-c_1 x) with the largest c_1 that lies above all points right of the mark. Curves end "
        f"where fewer than {COUNTED} errors were seen in all seeds together.",
        [*panels, by_strength],
    )


def _shown(here: FeatureMap) -> np.ndarray:
    """Mean errors, NaN where there were too few errors to count: (size, strength)."""
    mean = finite_mean(here.error)
    few = np.nansum(here.error, axis=0) * here.study.test_samples < COUNTED
    return np.where(few, np.nan, mean)


def _against_x(here: FeatureMap) -> Lines:
    shown = _shown(here)
    curves = [
        Curve(f"|S| = {size:g}", here.ratio[place], shown[place], role=f"size {place}")
        for place, size in enumerate(here.size)
    ]
    cells = here.measured(READ.features)
    if cells.any():
        x, error = here.ratio[cells], here.mean_error()[cells]
        counted = here.counted(READ.features)
        along = np.linspace(0.02, here.ratio[counted].max(), 120)
        slope = float(np.median(separation(error, here.classes) ** 2 / x))
        law = error_of(np.sqrt(slope * along), here.classes)
        curves.append(Curve(f"normal law, a = {slope:.2g}", along, law, role="law", style="dashed"))
        constant = float(here.largest_constant(here.error, counted))
        bound = np.minimum((here.classes - 1) * np.exp(-constant * along), 1.0)
        label = f"bound, c_1 = {constant:.2g}"
        curves.append(Curve(label, along, bound, role="theory", style="dotted"))
    return Lines(
        curves,
        x_label="x = |S| |u|^4/|A_k^T A_j|_F^2",
        y_label="test error",
        title=f"{here.schedule}, Gamma = {here.gamma:g}",
        y_log=True,
        marks=((READ.features, f"x = {READ.features:g}"),),
    )
