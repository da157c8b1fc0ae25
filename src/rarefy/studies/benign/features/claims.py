"""Verdicts of ``benign-features``: the figures (B6, B7), harmful overfitting (B5), and the fall of
the error with the ratio of Theorem 1, 2(a) (B3)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import judge_bound, judge_trend, mean_band, spearman_trend
from rarefy.studies.benign.constants import READ, small_loss
from rarefy.studies.benign.features.experiment import FeaturesExperiment
from rarefy.studies.benign.features.fall import fall_verdicts
from rarefy.studies.benign.features.map import FeatureMap, maps_of
from rarefy.studies.kit.reading import Naming

SEEN = 0.05
"""Least rise of accuracy that a reader of a heat map would see; a smaller one is not growth."""
MONOTONE = 0.5
"""Least Spearman rho of what is said to grow."""
FIGURE_4A, FIGURE_3 = 1.2, 1.0
"""Noise correlation ratio of Fig. 4a, and that of the edge of Fig. 3 where noise does not help."""
FIGURE_3_SIZE = 100
"""Class size of Fig. 3."""
FITTED = 0.99
"""Share of runs whose training loss must be small where the theorem says it is."""


def verdicts(study: FeaturesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for here in maps_of(study, results):
        named = Naming(study, scale, f"{here.setting}: ")
        found += fall_verdicts(here, scale) + _harmful(here, named)
        if here.gamma == FIGURE_4A:
            found += _figure_4a(here, named)
        if here.gamma == FIGURE_3:
            found += _figure_3(here, named)
    for claim, gamma in (("B7", FIGURE_4A), ("B6", FIGURE_3)):
        if gamma not in results["gamma"].values:
            what = Naming(study, scale)(claim, f"{study.setting}: needs Gamma {gamma:g}")
            note = f"Gamma {gamma:g} was not run"
            found.append(judge_bound(what, np.empty(0), SEEN, "at_least", note=note))
    return found


def _figure_4a(here: FeatureMap, named: Naming) -> list[Verdict]:
    """Accuracy grows with |u| and with |S|, each in the mean over all of the other axis: to keep
    only the |u| at which it can still grow would be to choose by the test data that are judged."""
    what = "accuracy grows with |u|, mean over |S|"
    found = _grows(named, "B7", what, here.strength, here.accuracy.mean(axis=1))
    what = "accuracy grows with |S|, mean over |u|"
    note = f"all {len(here.strength)} |u|, also those at which it is at chance or saturated"
    return found + _grows(named, "B7", what, here.size, here.accuracy.mean(axis=2), note)


def _figure_3(here: FeatureMap, named: Naming) -> list[Verdict]:
    """The feature axis of Fig. 3: without help from the noise accuracy rises with |u|."""
    place = int(np.abs(here.size - FIGURE_3_SIZE).argmin())
    what = f"accuracy rises with |u| at |S| = {here.size[place]:g}"
    return _grows(named, "B6", what, here.strength, here.accuracy[:, place])


def _grows(
    named: Naming, claim: str, what: str, axis: np.ndarray, accuracy: np.ndarray, note: str = ""
) -> list[Verdict]:
    """A trend along ``axis``, and a rise that can be seen; accuracy: (seed, axis)."""
    mean = mean_band(accuracy).mean
    ends = f"accuracy {mean[0]:.3g} at {axis[0]:g}, {mean[-1]:.3g} at {axis[-1]:g}"
    note = joined(ends, note)
    return [
        judge_trend(
            named(claim, what),
            spearman_trend(axis, accuracy, within_rows=True),
            "increasing",
            minimum_rho=MONOTONE,
            note=note,
        ),
        judge_bound(
            named(claim, f"{what}, rise from first to last"),
            accuracy[:, -1] - accuracy[:, 0],
            SEEN,
            "at_least",
            note=note,
        ),
    ]


def _harmful(here: FeatureMap, named: Naming) -> list[Verdict]:
    """Statement 3 with the smallest C_3 under which it speaks at all: Gamma itself, 1 at least."""
    limit = max(READ.harmful, here.gamma)
    floor = READ.harmful_error(here.classes)
    region = here.harmful(limit)
    what = named("B5", f"test error at least {floor:.3g} where both ratios are at most {limit:g}")
    if not region.any():
        why = "premise not met: no cell of the grid has so small a signal ratio"
        return [judge_bound(what, np.empty(0), floor, "at_least", note=why)]
    samples = here.error[:, region]
    if not here.overfits(region):
        note = (
            "premise not met: the median training loss there is "
            f"{np.nanmedian(here.train_loss[:, region]):.3g}, so nothing is overfitted; "
            f"mean errors {samples.mean(axis=0).min():.3g} to {samples.mean(axis=0).max():.3g}"
        )
        return [judge_bound(what, np.empty(0), floor, "at_least", note=note)]
    least = samples.min(axis=1)  # the theorem speaks of every run: a seed's worst cell counts
    edge = here.ratio_at(here.crossing(floor))
    reach = "nowhere on the grid"
    if np.isfinite(edge).any():
        reach = f"at x = {np.nanmin(edge):.3g} to {np.nanmax(edge):.3g}"
    note = (
        f"smallest of {region.sum()} cells, by seed; over the sizes the mean error falls below "
        f"{floor:.3g} {reach}"
    )
    small = f"share of runs with training loss at most {small_loss(here.study):g} there"
    return [
        judge_bound(what, least, floor, "at_least", note=note),
        judge_bound(
            named("B5", f"{small} (both ratios at most {limit:g})"),
            here.small_loss(region),
            FITTED,
            "at_least",
        ),
    ]
