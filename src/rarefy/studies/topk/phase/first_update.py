"""Claim S12: the first update's law, and the window that follows from it without free constants."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.regions import overlap
from rarefy.measure.statistics import Identity, judge_bound, judge_equal
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.studies.topk.phase.regions import (
    ENOUGH,
    OVERLAP,
    axes_of,
    first_update,
    kept_shares,
    measured_region,
    predicted_region,
    published_region,
)
from rarefy.theory import first_step

CLOSE = 0.1
"""Relative error of a law for equal logits: those of the initial network differ a little, and the
sizes of the classes, which the law averages, fluctuate by some percent a seed."""
SHARE_ERROR = 0.05
"""Mean error of a predicted share of filters."""


def first_update_verdicts(study: PhaseExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """The first update does not know the reading, nor (but for what would be kept) K."""
    sigma, keep = axes_of(results)
    steps = [first_update(study, value) for value in sigma]
    first = results.isel(reading=0)
    alike = first.isel(keep=0).transpose("seed", "sigma", ...)

    def identity(what: str) -> Identity:
        return ("S12", study.name, scale, f"{study.setting}: {what}")

    gained, added = alike["first_signal"].values, alike["first_noise"].values
    predicted = {
        "signal coordinate, measured over its law": (
            gained,
            [step.signal_gain for step in steps],
        ),
        "noise std, measured over its law": (added, [step.noise_gain for step in steps]),
        # App. I puts 1/2 for ReLU', an average over filters that are open and shut; measured are
        # the open half alone, the others gain nothing
        "signal coordinate, half of the open filters' gain over App. I": (
            gained / 2,
            [first_step.paper_signal_coordinate(step) for step in steps],
        ),
        "noise std, measured over App. I": (
            added,
            [first_step.paper_noise_std(step) for step in steps],
        ),
    }
    found = [
        judge_equal(
            identity(f"{what}, ratio of what the first update adds"),
            (measured / np.array(law)).mean(axis=1),
            1.0,
            CLOSE,
            note="mean over noise levels, one value a seed",
        )
        for what, (measured, law) in predicted.items()
    ]
    kept = first["first_kept"].transpose("seed", "sigma", "keep").values
    shares = np.stack([kept_shares(study, results, value) for value in sigma])
    error = np.abs(kept - shares).mean(axis=(1, 2))
    found.append(
        judge_bound(
            identity("share of filters that keep their signal, mean error of the law"),
            error,
            SHARE_ERROR,
            "at_most",
            note="over all noise levels and K, of filters whose signal is active; a random "
            f"support, K/d, is off by {np.abs(kept - keep / study.d).mean():.2g}",
        )
    )
    for enough, words in ENOUGH.items():
        region = predicted_region(study, results, enough)
        drawn = overlap(published_region(study, results), region)
        for reading in results["reading"].values:
            seeds = first["seed"].values
            samples = [overlap(measured_region(results, reading, s), region) for s in seeds]
            found.append(
                judge_bound(
                    identity(
                        f"{reading}: region of test loss < 2 against the first update's window, "
                        f"{enough}"
                    ),
                    np.array(samples),
                    OVERLAP,
                    "at_least",
                    note=f"shared over joint area, no constant fitted; K from which {words}, to "
                    "where noise grows as fast; the whole diagram would score "
                    f"{overlap(np.ones_like(region), region):.2f}, the published curves "
                    f"{drawn:.2f}",
                )
            )
    return found
