"""Verdicts of ``topk-phase``: the figure (S6, S7), and beside it the theorems and first update."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.measure.regions import overlap
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.reading import Naming
from rarefy.studies.topk.phase import regions
from rarefy.studies.topk.phase.experiment import SHUT, PhaseExperiment
from rarefy.studies.topk.phase.first_update import first_update_verdicts
from rarefy.studies.topk.phase.theorems import FITTED, Diagram, mostly, rescue, too_few

EVERYWHERE = 0.99
"""Share of cells that makes "everywhere" true, since 002 has one draw and we have several."""
FACTOR = 1.5
"""A published constant agrees with a fitted one up to this factor."""


def verdicts(experiment: PhaseExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for reading in texts(results, "reading"):
        named = Naming(experiment, scale, f"{experiment.setting}, {reading}: ")
        here = Diagram.of(experiment, results, reading)
        found += [*_figure(named, here), *_fitted(named, experiment, results, reading)]
        found += [*rescue(named, here), *too_few(named, here)]
    named = Naming(experiment, scale, f"{experiment.setting}: ")
    found += _readings(named, regions.published_region(experiment, results), results)
    return found + first_update_verdicts(named, experiment, results)


def _figure(named: Naming, here: Diagram) -> list[Verdict]:
    """Fig. 1 and 2."""
    good = here.loss < regions.LEARNT
    inside, below, above = here.inside(), here.below(), here.above()
    everything = overlap(np.ones_like(inside), inside)
    # a rho per seed; NaN, a missing value, where the width never changes
    widths = good @ regions.spacing(here.keep)
    trends = [st.spearman_trend(here.sigma, row, permutations=1).rho for row in widths]
    finite = here.train[np.isfinite(here.train)]
    spread = f"largest {finite.max():.3g}, median {np.median(finite):.2g}" if finite.size else ""
    fitted = named("S6", f"share of cells with training loss under {FITTED:g}")
    under = named("S7", "inside the published curves the test loss is under 2")
    nowhere = "no cell of the grid lies there"
    return [
        mostly(fitted, here.train < FITTED, np.ones_like(inside), spread, EVERYWHERE),
        st.judge_bound(
            named("S7", "region of test loss < 2 against the published one"),
            np.array([overlap(region, inside) for region in good]),
            regions.OVERLAP,
            "at_least",
            note=f"shared over joint area; the whole diagram would score {everything:.2f}",
        ),
        mostly(under, good, inside),
        *(
            mostly(
                named("S7", f"{side} curve it is 2 or more"),
                ~good,
                region,
                "" if region.any() else nowhere,
            )
            for side, region in (("below the lower", below), ("above the upper", above))
        ),
        st.judge_bound(
            named("S7", "the window's width shrinks as sigma grows, Spearman's rho"),
            np.array(trends),
            -st.MEANS_FOLLOW,
            "at_most",
            note="one rho a seed: its noise levels share their draws",
        ),
    ]


def _fitted(
    named: Naming, experiment: PhaseExperiment, results: xr.Dataset, reading: str
) -> list[Verdict]:
    """Constants of the published curves, fitted to the measured region."""
    fits = regions.fitted_curves(experiment, results, reading)
    score = st.mean_interval([fit.overlap for fit in fits]).mean
    factors = {"lower": [fit.lower for fit in fits], "upper": [fit.upper for fit in fits]}
    constants = regions.constants_of(experiment, fits)
    published = regions.published_constants(experiment)
    return [
        st.judge_equal(
            named("S7", f"log of fitted over published constant, {name} curve"),
            np.log(np.array(factors[name])),
            0.0,
            float(np.log(FACTOR)),
            note=f"fitted {ours}, published {theirs:.3g}; the fit's own overlap is {score:.2f}",
        )
        for name, ours, theirs in zip(factors, constants, published, strict=True)
    ]


def _readings(named: Naming, region: np.ndarray, results: xr.Dataset) -> list[Verdict]:
    """Which reading the published figure looks like: overlaps with it, paired by seed."""
    readings = texts(results, "reading")
    found = []
    for other in (word for word in readings if SHUT in readings and word != SHUT):
        gain = regions.overlaps(results, SHUT, region) - regions.overlaps(results, other, region)
        note = (
            f"{SHUT} is nearer in {int((gain > 0).sum())} of {len(gain)} seeds; which reading the "
            "figure was made with is not a claim of the paper"
        )
        name = named("S7", f"overlap with the published region, {SHUT} minus {other}")
        found.append(st.judge_difference(name, gain, "positive", note=note))
    return found
