"""Verdicts of ``granularity-labels`` (G12): the gain of fine labels as each knob is turned."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from rarefy.studies.granularity._common import SMALL, undecided
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_labels import GranularityLabels

NO_HELP = SMALL
"""A gain of at most this is no help: one test sample in twenty."""


def mixed_error(results: xr.Dataset) -> xr.DataArray:
    """Error on a test set of which half is hard. On hard samples alone a coin would do better than
    a network that the traces of the other side mislead; where hard samples are rarer than that,
    fine labels gain less."""
    return (results["easy_error"] + results["hard_error"]) / 2


def gain(results: xr.Dataset) -> np.ndarray:
    """Error of clean coarse labels minus that of the fine ones at the end, (seed, turn)."""
    error = mixed_error(results.isel(read=-1))
    found = error.sel(labels="coarse") - error.sel(labels="fine")
    return np.asarray(found.transpose("seed", "turn").values)


def labels_verdicts(study: GranularityLabels, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    found: list[Verdict] = []
    for noise in here["patch_noise"].values:
        for knob in (str(word) for word in here["knob"].values):
            found += _knob(study, here.sel(patch_noise=noise, knob=knob), scale, float(noise), knob)
    return found


def _knob(
    study: GranularityLabels, here: xr.Dataset, scale: str, noise: float, knob: str
) -> list[Verdict]:
    def identity(what: str) -> Identity:
        return ("G12", study.name, scale, f"{study.setting}, noise {noise:g}, {knob}: {what}")

    gained = gain(here)
    words = words_of(study, knob)
    last = words[-1]
    far = judge_bound(
        identity(f"gain of fine over coarse labels with {last}, at most {NO_HELP:g}"),
        gained[:, -1],
        NO_HELP,
        "at_most",
        note=_way(gained, words),
    )
    falls = judge_trend(
        identity(f"the gain falls from {words[0]} to {last}"),
        spearman_trend(np.arange(gained.shape[1]), gained, within_rows=True),
        "decreasing",
        note=_way(gained, words),
    )
    clean = mean_interval(gained[:, 0])
    if not clean.low > 0:
        # a knob cannot take away what is not there
        why = f"clean fine labels gain {clean.mean:.3f} here, not certainly anything"
        return [undecided(far, why), undecided(falls, why)]
    return [far, falls]


def words_of(study: GranularityLabels, knob: str) -> list[str]:
    """Each turn of a knob in words."""
    if knob == "noisy":
        return [f"{share:.0%} random labels" for share in study.wrong]
    if knob == "misaligned":
        return [f"{share:.0%} of subclasses crossed" for share in study.crossed]
    return [f"{count} sample{'s' if count > 1 else ''} a subclass" for count in study.samples]


def _way(gained: np.ndarray, words: list[str]) -> str:
    """Where on the way the gain goes."""
    band = mean_band(gained)
    said = f"gain {band.mean[0]:.3f} at first, {band.mean[-1]:.3f} at last"
    half = np.flatnonzero(band.mean <= band.mean[0] / 2)
    gone = np.flatnonzero(band.mean <= NO_HELP)
    if band.mean[0] > 0:
        said += f"; halved {'at ' + words[half[0]] if len(half) else 'nowhere'}"
    return (
        f"{said}; gone (at most {NO_HELP:g}) {'at ' + words[gone[0]] if len(gone) else 'nowhere'}"
    )
