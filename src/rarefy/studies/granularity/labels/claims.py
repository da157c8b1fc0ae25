"""Verdicts of ``granularity-labels`` (G12): the gain of fine labels as each knob is turned.

The paper compares networks after fine-tuning on the coarse question (004 Sec. 6.2). Here both are
judged, before and after it.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Identity,
    judge_bound,
    judge_trend,
    mean_band,
    mean_interval,
    spearman_trend,
)
from rarefy.studies.granularity.labels.experiment import LabelsExperiment
from rarefy.studies.granularity.tuning import COUNTS, STAGES, error_of
from rarefy.studies.granularity.variations import AS_CHOSEN
from rarefy.studies.kit.premise import undecided

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
    found = error.sel(labels="coarse") - error.sel(labels="fine")
    return np.asarray(found.transpose("seed", "turn").values)


def labels_verdicts(study: LabelsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    found: list[Verdict] = []
    for stage in STAGES:
        for noise in here["patch_noise"].values:
            for knob in (str(word) for word in here["knob"].values):
                gained = gain(here.sel(patch_noise=noise, knob=knob), stage)
                found += _knob(study, gained, scale, (stage, float(noise), knob))
    return found


def _knob(
    study: LabelsExperiment, gained: np.ndarray, scale: str, at: tuple[str, float, str]
) -> list[Verdict]:
    stage, noise, knob = at
    where = f"{study.setting}, noise {noise:g}, {knob}, {stage} fine-tuning"

    def identity(what: str) -> Identity:
        return ("G12", study.name, scale, f"{where}: {what}")

    words = words_of(study, knob)
    way = _way(gained, words)
    sanity = SANITY.get(knob, "") if stage == "before" else ""
    thinned = THINNED if knob == "starved" else ""
    end = judge_bound(
        identity(f"gain of fine over coarse labels with {words[-1]}"),
        gained[:, -1],
        COUNTS,
        "at_most",
        note=_joined(way, sanity, thinned),
    )
    falls = judge_trend(
        identity(f"the gain falls from {words[0]} to {words[-1]}"),
        spearman_trend(np.arange(gained.shape[1]), gained, within_rows=True),
        "decreasing",
        note=_joined(way, thinned),
    )
    found = [end, falls]
    for what, place in halfway(study, knob).items():
        lost = gained[:, :1] - gained[:, place : place + 1] if place >= 0 else np.empty(0)
        found.append(
            judge_bound(
                identity(f"gain lost with {what}, against {words[0]}"),
                lost,
                COUNTS,
                "at_least",
                note=thinned if place >= 0 else "no such turn in the grid",
            )
        )
    clean = mean_interval(gained[:, 0])
    if not clean.low > COUNTS:
        # a knob cannot take away what is not there
        why = f"clean fine labels gain {clean.mean:.3f}, not certainly more than {COUNTS:g}"
        return [undecided(each, why) for each in found]
    return found


def halfway(study: LabelsExperiment, knob: str) -> dict[str, int]:
    """The turns on the way that are judged, in words, and their places; -1: not in the grid."""
    found = {}
    for share in HALFWAY[knob]:
        value = share * study.samples[0] if knob == "starved" else share
        values = turned(study, knob)
        place = values.index(value) if value in values else -1
        said = words_of(study, knob)[place] if place >= 0 else f"a share of {share:g}"
        found[said] = place
    return found


def turned(study: LabelsExperiment, knob: str) -> list[float]:
    """What a knob's turns stand for."""
    values = {"noisy": study.wrong, "misaligned": study.crossed, "starved": study.samples}[knob]
    return [float(value) for value in values]


def words_of(study: LabelsExperiment, knob: str) -> list[str]:
    """Each turn of a knob in words."""
    if knob == "noisy":
        return [f"{100 * share:g}% random labels" for share in study.wrong]
    if knob == "misaligned":
        tossed = "side tossed sample by sample in"
        return [f"{tossed} {100 * share:g}% of subclasses" for share in study.crossed]
    return [f"{count} sample{'s' if count > 1 else ''} a subclass" for count in study.samples]


def _way(gained: np.ndarray, words: list[str]) -> str:
    """Where on the way the gain goes."""
    band = mean_band(gained)
    said = f"gain {band.mean[0]:.3f} at first, {band.mean[-1]:.3f} at last"
    half = np.flatnonzero(band.mean <= band.mean[0] / 2)
    gone = np.flatnonzero(band.mean <= COUNTS)
    if band.mean[0] > 0:
        said += f"; halved {'at ' + words[half[0]] if len(half) else 'nowhere'}"
    return f"{said}; gone (at most {COUNTS:g}) {'at ' + words[gone[0]] if len(gone) else 'nowhere'}"


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
