"""Verdicts of ``granularity-labels`` (G12): the gain of fine labels as each knob is turned.

The paper compares networks after fine-tuning on the coarse question (004 Sec. 6.2). Here both are
judged, before and after it.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.labels.experiment import LabelsExperiment
from rarefy.studies.granularity.stored_sets import COUNTS, STAGES, error_of
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every

HALFWAY = {"noisy": (0.25, 0.5), "misaligned": (0.25, 0.5), "starved": (0.5, 0.25)}
"""Turns on the way that are judged at every scale: shares of labels or subclasses spoilt, and of
samples left. Unlike at the ends, the labels still tell something of the side there."""
SANITY = {
    "noisy": "a sanity check: such labels tell nothing",
    "misaligned": "a sanity check: such labels tell nothing of the side that is asked for",
}
"""What the far ends are before fine-tuning, when answers are read from the labels' sides."""
THINNED = "the whole set is thinned at a fixed k, the paper cuts a fixed set into more subclasses"


def gain(results: xr.Dataset, stage: str) -> np.ndarray:
    """Error of clean coarse labels minus that of the fine ones on mixed samples, (seed, turn)."""
    error = error_of(results, "mixed", stage)
    return by_seed(error.sel(labels="coarse") - error.sel(labels="fine"), "turn")


def verdicts(experiment: LabelsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    found = []
    for stage, ((noise, knob), there) in product(STAGES, every(here, "patch_noise", "knob")):
        where = f"{experiment.setting}, noise {noise:g}, {knob}, {stage} fine-tuning: "
        found += _of_knob(experiment, there, Naming(experiment, scale, where), stage, str(knob))
    return found


def _of_knob(
    experiment: LabelsExperiment, there: xr.Dataset, named: Naming, stage: str, knob: str
) -> list[Verdict]:
    gained = gain(there, stage)
    words = turns_in_words(experiment, knob)
    way = _way(gained, words)
    sanity = SANITY.get(knob, "") if stage == "before" else ""
    thinned = THINNED if knob == "starved" else ""
    last = named("G12", f"gain of fine over coarse labels with {words[-1]}")
    falls = named("G12", f"the gain falls from {words[0]} to {words[-1]}")
    trend = st.spearman_trend(np.arange(gained.shape[1]), gained, within_rows=True)
    note = joined(way, sanity, thinned)
    found = [
        st.judge_bound(last, gained[:, -1], COUNTS, "at_most", note=note),
        st.judge_trend(falls, trend, "decreasing", note=joined(way, thinned)),
    ]
    for share in HALFWAY[knob]:
        turn = share * experiment.samples[0] if knob == "starved" else share
        turns = experiment.turns(knob)
        what, lost, note = f"a share of {share:g}", np.empty(0), "no such turn in the grid"
        if turn in turns:
            place, note = turns.index(turn), thinned
            what, lost = words[place], gained[:, 0] - gained[:, place]
        identity = named("G12", f"gain lost with {what}, against {words[0]}")
        found.append(st.judge_bound(identity, lost, COUNTS, "at_least", note=note))
    clean = st.mean_interval(gained[:, 0])
    # a knob cannot take away what is not there
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


def _way(gained: np.ndarray, words: list[str]) -> str:
    """Where on the way the gain goes."""
    mean = st.mean_band(gained).mean

    def where(low: np.ndarray) -> str:
        return f"at {words[low.argmax()]}" if low.any() else "nowhere"

    halved = f"halved {where(mean <= mean[0] / 2)}" if mean[0] > 0 else ""
    gone = f"gone (at most {COUNTS:g}) {where(mean <= COUNTS)}"
    return joined(f"gain {mean[0]:.3f} at first, {mean[-1]:.3f} at last", halved, gone)
