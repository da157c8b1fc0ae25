"""Pictures and tables of ``granularity-labels``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity._common import (
    LABELS,
    ROLES,
    seeds_in_words,
    sensitivity_table,
    shown,
)
from rarefy.studies.granularity._labels_verdicts import THINNED, gain, turned, words_of
from rarefy.studies.granularity._premises import premise_table
from rarefy.studies.granularity._setting import PATCHES_AND_RATE, share_curve
from rarefy.studies.granularity._tuning import COUNTS, STAGES, error_of, tuned_setting
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_labels import GranularityLabels

KNOBS_SAID = (
    "Noisy: a share of fine labels is drawn at random. Misaligned: in a share of the subclasses "
    "the side of the label is tossed, sample by sample. Starved: fewer samples of every subclass, "
    "for both networks. "
)
X_LABELS = {
    "noisy": "share of fine labels drawn at random",
    "misaligned": "share of subclasses with tossed sides",
    "starved": "training samples of every subclass",
}


def labels_pictures(study: GranularityLabels, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    found = [_errors(study, here, float(noise)) for noise in here["patch_noise"].values]
    return [_gains(study, here), *found]


def _errors(study: GranularityLabels, here: xr.Dataset, noise: float) -> Picture:
    there = here.sel(patch_noise=noise)
    panels = []
    for stage in STAGES:
        for knob in (str(word) for word in there["knob"].values):
            curves = [
                share_curve(
                    f"{labels} labels, {kind} samples",
                    turned(study, knob),
                    error_of(there, kind, stage)
                    .sel(knob=knob, labels=labels)
                    .transpose("seed", "turn")
                    .values,
                    ROLES[labels],
                    style,
                )
                for kind, style in (("hard", "solid"), ("easy", "dashed"))
                for labels in LABELS
            ]
            panels.append(
                Lines(
                    curves,
                    x_label=X_LABELS[knob],
                    y_label="error (share of samples)",
                    title=f"{knob}, {stage} fine-tuning",
                    x_log=knob == "starved",
                )
            )
    return Picture(
        f"errors-{noise:g}",
        f"Fine labels spoilt in three ways, patches with noise of std {noise:g}",
        "One network has clean coarse labels (the side), the other fine ones (the subclass) of the "
        f"same stored samples. {KNOBS_SAID}Upper row: after {study.steps} updates with these "
        "labels, an answer being the side of the largest output. Lower row: after "
        f"{study.tune_steps} more on the clean coarse question, the same for both networks, as the "
        "paper compares. Look where a fine curve leaves its place below the coarse one of the "
        "same style, and whether fine-tuning brings it back (where one dashed curve is missing, it "
        "lies under the other). "
        f"{study.setting}; bands: 95 % over {seeds_in_words(here)}.",
        panels,
    )


def _gains(study: GranularityLabels, here: xr.Dataset) -> Picture:
    panels = []
    for stage in STAGES:
        for knob in (str(word) for word in here["knob"].values):
            x = np.array(turned(study, knob))
            curves = [
                mean_curve(
                    f"noise {noise:g}",
                    x,
                    gain(here.sel(patch_noise=noise, knob=knob), stage),
                    f"noise {place}",
                )
                for place, noise in enumerate(here["patch_noise"].values)
            ]
            ends, level = np.array([x.min(), x.max()]), np.full(2, COUNTS)
            curves.append(Curve(f"counts: {COUNTS:g}", ends, level, role="bound", style="dotted"))
            panels.append(
                Lines(
                    curves,
                    x_label=X_LABELS[knob],
                    y_label="error saved by fine labels",
                    title=f"{knob}, {stage} fine-tuning",
                    x_log=knob == "starved",
                )
            )
    return Picture(
        "gain",
        "How much of the gain is left",
        "Error of clean coarse labels minus that of fine labels of the same samples, on a test set "
        "of which half is hard. Below the dotted line a gain does not count, below 0 fine labels "
        f"do harm. {KNOBS_SAID}Upper row: after {study.steps} updates with these labels. Lower "
        f"row: after {study.tune_steps} more on the clean coarse question, the paper's comparison. "
        f"Bands: 95 % over {seeds_in_words(here)}, paired by seed.",
        panels,
    )


def labels_tables(study: GranularityLabels, results: xr.Dataset) -> list[Table]:
    premise = premise_table(
        study.at_noise(study.main_noise), study.subclasses, f", noise {study.main_noise:g}"
    )
    setting = tuned_setting(study.at_noise(study.main_noise), study.tune_steps)
    return [_errors_table(study, results), _sensitivity(study, results), setting, premise]


def _errors_table(study: GranularityLabels, results: xr.Dataset) -> Table:
    here = results.sel(variation=AS_CHOSEN)
    rows = []
    for noise in here["patch_noise"].values:
        for knob in (str(word) for word in here["knob"].values):
            one = here.sel(patch_noise=noise, knob=knob)
            gained = {stage: gain(one, stage) for stage in STAGES}
            for place, words in enumerate(words_of(study, knob)):
                cell = one.isel(turn=place)
                loss = cell["loss"].isel(read=-1).sel(labels="fine")
                for stage in STAGES:
                    errors = (
                        shown(error_of(cell, kind, stage).sel(labels=labels).values)
                        for kind in ("easy", "hard")
                        for labels in LABELS
                    )
                    learnt = f"{float(loss.mean()):.3g}" if stage == "before" else ""
                    gains = shown(gained[stage][:, place])
                    rows.append((f"{noise:g}", knob, words, stage, learnt, *errors, gains))
    return Table(
        "knobs",
        "Errors and gain, turn by turn",
        f"Before fine-tuning: after {study.steps} updates with the labels named; after it: "
        f"{study.tune_steps} more on the coarse question. The gain is on a test set of which half "
        f"is hard. Starved: {THINNED}. Means with 95 % intervals over {seeds_in_words(results)}.",
        (
            "noise",
            "knob",
            "fine labels",
            "fine-tuning",
            "fine: training loss",
            "coarse: easy error",
            "fine: easy error",
            "coarse: hard error",
            "fine: hard error",
            "gain",
        ),
        rows,
    )


def _sensitivity(study: GranularityLabels, results: xr.Dataset) -> Table:
    there = results.sel(patch_noise=study.main_noise)
    knobs = [str(word) for word in results["knob"].values]
    columns = {}
    for stage in STAGES:
        error = error_of(there, "mixed", stage)
        saved = error.sel(labels="coarse") - error.sel(labels="fine")
        columns[f"clean, {stage}"] = saved.sel(knob=knobs[0]).isel(turn=0)
        for knob in knobs:
            columns[f"{words_of(study, knob)[-1]}, {stage}"] = saved.sel(knob=knob).isel(turn=-1)
    return sensitivity_table(
        results,
        columns,
        "Gain of fine over coarse labels on a test set of which half is hard, before and after "
        f"fine-tuning, noise {study.main_noise:g}. {PATCHES_AND_RATE}",
    )
