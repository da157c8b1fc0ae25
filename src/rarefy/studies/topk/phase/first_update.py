"""Claim S12: the first update's law, and the window that follows from it without free constants."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.regions import overlap
from rarefy.measure.statistics import judge_bound, judge_equal
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.reading import Naming
from rarefy.studies.topk.phase import regions
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.theory.first_step import paper_noise_std, paper_signal_coordinate

CLOSE = 0.1
"""Relative error of a law for equal logits: those of the initial network differ a little, and the
sizes of the classes, which the law averages, fluctuate by some percent from seed to seed."""
SHARE_ERROR = 0.05
"""Mean error of a predicted share of filters."""


def first_update_verdicts(
    named: Naming, experiment: PhaseExperiment, results: xr.Dataset
) -> list[Verdict]:
    """The first update does not know the reading, nor (but for what would be kept) K."""
    sigma, keep = regions.axes_of(results)
    steps = [regions.first_update(experiment, value) for value in sigma]
    first = results.isel(reading=0)
    gained, added = (
        by_seed(first[name].isel(keep=0), "sigma") for name in ("first_signal", "first_noise")
    )
    signal, noise = [step.signal_gain for step in steps], [step.noise_gain for step in steps]
    # App. I puts 1/2 for ReLU', an average over filters that are open and shut; measured are the
    # open half alone, the others gain nothing
    half = "signal coordinate, half of the open filters' gain over App. I"
    found = [
        judge_equal(
            named("S12", f"{what}, ratio of what the first update adds"),
            (measured / np.array(law)).mean(axis=1),
            1.0,
            CLOSE,
            note="mean over noise levels, one value a seed",
        )
        for what, measured, law in (
            ("signal coordinate, measured over its law", gained, signal),
            ("noise std, measured over its law", added, noise),
            (half, gained / 2, [paper_signal_coordinate(step) for step in steps]),
            ("noise std, measured over App. I", added, [paper_noise_std(step) for step in steps]),
        )
    ]
    kept = by_seed(first["first_kept"], "sigma", "keep")
    shares = np.stack([regions.kept_shares(experiment, results, value) for value in sigma])
    found.append(
        judge_bound(
            named("S12", "share of filters that keep their signal, mean error of the law"),
            np.abs(kept - shares).mean(axis=(1, 2)),
            SHARE_ERROR,
            "at_most",
            note="over all noise levels and K, of filters whose signal is active; a random "
            f"support, K/d, is off by {np.abs(kept - keep / experiment.d).mean():.2g}",
        )
    )
    against = "region of test loss < 2 against the first update's window"
    for enough, words in regions.ENOUGH.items():
        region = regions.predicted_region(experiment, results, enough)
        drawn = overlap(regions.published_region(experiment, results), region)
        note = (
            f"shared over joint area, no constant fitted; K from which {words}, to where noise "
            "grows as fast; the whole diagram would score "
            f"{overlap(np.ones_like(region), region):.2f}, the published curves {drawn:.2f}"
        )
        for reading in texts(results, "reading"):
            name = named("S12", f"{reading}: {against}, {enough}")
            scores = regions.overlaps(results, reading, region)
            found.append(judge_bound(name, scores, regions.OVERLAP, "at_least", note=note))
    return found
