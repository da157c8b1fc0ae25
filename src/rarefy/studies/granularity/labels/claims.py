"""Verdicts of ``granularity-labels`` (G12): what is left of the gain of fine labels.

The paper compares networks after fine-tuning on the coarse question (004 Sec. 6.2). Primary is
that comparison with each fault at its worst, at the noise at which the faults can bite.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.labels.experiment import KNOBS, LabelsExperiment
from rarefy.studies.granularity.stored_sets import COUNTS, STAGES, error_of
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming

THINNED = "the whole set is thinned at a fixed k, the paper cuts a fixed set into more subclasses"


def gain(results: xr.Dataset, stage: str) -> np.ndarray:
    """Error of clean coarse labels minus that of the fine ones on mixed samples, (seed, turn)."""
    error = error_of(results, "mixed", stage)
    return by_seed(error.sel(labels="coarse") - error.sel(labels="fine"), "turn")


def verdicts(experiment: LabelsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here, main = results.sel(variation=AS_CHOSEN), experiment.main_noise
    found = []
    for knob in texts(here, "knob"):
        for noise in here["patch_noise"].values:
            for stage in STAGES:
                if stage == "after" or noise == main:
                    there = here.sel(patch_noise=noise, knob=knob)
                    found += _left(experiment, there, scale, stage)
    return found


def _left(study: LabelsExperiment, there: xr.Dataset, scale: str, stage: str) -> list[Verdict]:
    """The gain with the fault at its worst, and in the primary's place whether it falls."""
    knob, noise = str(there["knob"].values), float(there["patch_noise"])
    main = stage == "after" and noise == study.main_noise
    where = f"{knob}, noise {noise:g}, {stage} fine-tuning, {study.setting}: "
    named, gained = Naming(study, scale, where), gain(there, stage)
    words, thinned = turns_in_words(study, knob), THINNED if knob == "starved" else ""
    clean = st.mean_interval(gained[:, 0])
    note = joined(f"gain {clean.mean:.3f} with {words[0]}", thinned)
    role = f"G12.{KNOBS.index(knob) + 1}" if main else "G12"
    what = f"gain of fine over coarse labels with {words[-1]}"
    found = [st.judge_bound(named(role, what), gained[:, -1], COUNTS, "at_most", note=note)]
    if main:
        falls = named("G12", f"the gain falls from {words[0]} to {words[-1]}")
        trend = st.spearman_trend(np.arange(gained.shape[1]), gained, within_rows=True)
        found.append(st.judge_trend(falls, trend, "decreasing", note=thinned))
    # a fault cannot take away what is not there
    why = f"clean fine labels gain {clean.mean:.3f}, not certainly more than {COUNTS:g}"
    return found if clean.low > COUNTS else [undecided(each, why) for each in found]


def turns_in_words(experiment: LabelsExperiment, knob: str) -> list[str]:
    """Each turn of a knob in words."""
    if knob == "noisy":
        return [f"{100 * share:g}% random labels" for share in experiment.wrong]
    if knob == "misaligned":
        tossed = "side tossed sample by sample in"
        return [f"{tossed} {100 * share:g}% of subclasses" for share in experiment.crossed]
    return [f"{count} sample{'s' if count > 1 else ''} a subclass" for count in experiment.samples]
