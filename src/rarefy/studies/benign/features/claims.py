"""Verdicts of ``benign-features``: Fig. 4a (B7), the fall of the error with the ratio of Theorem 1,
2(a) (B3), and harmful overfitting (B5)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import finite_mean, judge_bound, judge_trend, spearman_trend
from rarefy.studies.benign.constants import READ
from rarefy.studies.benign.features.experiment import FeaturesExperiment
from rarefy.studies.benign.features.fall import fall_verdicts
from rarefy.studies.benign.features.map import FeatureMap, maps_of
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming

SEEN = 0.05
"""Least rise of accuracy that a reader of a heat map would see; a smaller one is not growth."""
MONOTONE = 0.5
"""Least Spearman rho of what is said to grow."""
FIGURE_4A, ALIKE = 1.2, 1.0
"""Noise correlation ratio of Fig. 4a, and the one at which noise cannot help: there Theorem 1, 2(a)
and 3 are judged, from networks trained as the theorem has it."""


def verdicts(study: FeaturesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for here in maps_of(study, results):
        theorem = here.schedule == "trained" and here.gamma == ALIKE
        condition = "" if theorem else f"{here.schedule}, Gamma {here.gamma:g}: "
        named = Naming(study, scale, condition)
        found += fall_verdicts(here, named, theorem)
        found.append(_harmful(here, named, "B5.1" if theorem else "B5"))
        if here.gamma == FIGURE_4A:
            found += _figure_4a(here, named, Naming(study, scale))
    return found


def _figure_4a(here: FeatureMap, named: Naming, plain: Naming) -> list[Verdict]:
    """Accuracy grows with |u| and with |S|, each in the mean over all of the other axis: to keep
    only the |u| at which it can still grow would be to choose by the test data that are judged."""
    if here.schedule != "printed":
        return [_rise(here, named, "B7")]
    in_size, in_strength = here.accuracy.mean(axis=2), here.accuracy.mean(axis=1)
    return [
        _grows(plain("B7.1", "accuracy grows with |S|, mean over |u|"), here.size, in_size),
        _grows(plain("B7.2", "accuracy grows with |u|, mean over |S|"), here.strength, in_strength),
        _rise(here, plain, "B7.3"),
    ]


def _grows(identity: tuple[str, str, str, str], axis: np.ndarray, accuracy: np.ndarray) -> Verdict:
    """A trend along ``axis``; accuracy: (seed, axis)."""
    mean = finite_mean(accuracy)
    return judge_trend(
        identity,
        spearman_trend(axis, accuracy, within_rows=True),
        "increasing",
        minimum_rho=MONOTONE,
        note=f"accuracy {mean[0]:.3f} at {axis[0]:g}, {mean[-1]:.3f} at {axis[-1]:g}",
    )


def _rise(here: FeatureMap, named: Naming, claim: str) -> Verdict:
    """Growth with |S| that can be seen."""
    accuracy = here.accuracy.mean(axis=2)
    what = f"rise of accuracy from |S|={here.size[0]:g} to {here.size[-1]:g}, mean over |u|"
    note = f"all {len(here.strength)} |u|, also those at which it is at chance or saturated"
    rise = accuracy[:, -1] - accuracy[:, 0]
    return judge_bound(named(claim, what), rise, SEEN, "at_least", note=note)


def _harmful(here: FeatureMap, named: Naming, claim: str) -> Verdict:
    """Statement 3 with the smallest C_3 under which it speaks at all: Gamma itself, 1 at least."""
    limit, floor = max(READ.harmful, here.gamma), READ.harmful_error(here.classes)
    region = here.harmful(limit)
    what = named(claim, f"test error at least {floor:.3g} where both ratios are at most {limit:g}")
    if not region.any():
        empty = judge_bound(what, np.empty(0), floor, "at_least")
        return undecided(empty, "no cell of the grid has so small a signal ratio")
    least = here.error[:, region].min(axis=1)  # the theorem speaks of every run
    edge = here.ratio_at(here.crossing(floor))
    reach = "nowhere on the grid"
    if np.isfinite(edge).any():
        reach = f"at x = {np.nanmin(edge):.3g} to {np.nanmax(edge):.3g}"
    note = f"smallest of {region.sum()} cells, by seed; the mean error falls below it {reach}"
    verdict = judge_bound(what, least, floor, "at_least", note=note)
    return undecided(verdict, here.untrained(region))
