"""Pictures and tables of ``granularity-labels``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import banded
from rarefy.studies.granularity._common import (
    LABELS,
    ROLES,
    seeds_in_words,
    sensitivity_table,
    shown,
)
from rarefy.studies.granularity._labels_verdicts import NO_HELP, gain, mixed_error, words_of
from rarefy.studies.granularity._premises import premise_table
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_labels import GranularityLabels

X_LABELS = {
    "noisy": "share of fine labels drawn at random",
    "misaligned": "share of subclasses with labels of both sides",
    "starved": "training samples of every subclass",
}
TITLES = {"noisy": "noisy", "misaligned": "misaligned", "starved": "starved"}


def turned(study: GranularityLabels, knob: str) -> np.ndarray:
    """What a knob's turns stand for."""
    values = {"noisy": study.wrong, "misaligned": study.crossed, "starved": study.samples}[knob]
    return np.asarray(values, dtype=float)


def labels_pictures(study: GranularityLabels, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    found = [_errors(study, here, float(noise)) for noise in here["patch_noise"].values]
    return [*found, _gains(study, here)]


def _errors(study: GranularityLabels, here: xr.Dataset, noise: float) -> Picture:
    end = here.sel(patch_noise=noise).isel(read=-1)
    panels = []
    for knob in (str(word) for word in end["knob"].values):
        curves = [
            banded(
                f"{labels} labels, {kind} samples",
                turned(study, knob),
                end[f"{kind}_error"].sel(knob=knob, labels=labels).transpose("seed", "turn").values,
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
                title=TITLES[knob],
                x_log=knob == "starved",
            )
        )
    return Picture(
        f"errors-{noise:g}",
        f"Fine labels spoilt in three ways, patches with noise of std {noise:g}",
        "Coarse labels are always clean; the fine labels of the same stored samples get worse to "
        "the right in the first two panels and to the left in the third. Clean fine labels (low "
        "blue) save the hard samples. Labels drawn at random and subclasses whose labels are "
        "tossed between the sides take that away, and hurt easy samples too. With few samples "
        "the fine network must find a feature from one or two examples: that works as long as "
        f"the noise in a patch is weak against the feature. {study.setting}, {study.steps} "
        f"updates; bands: 95 % over {seeds_in_words(here)}.",
        panels,
    )


def _gains(study: GranularityLabels, here: xr.Dataset) -> Picture:
    panels = []
    for knob in (str(word) for word in here["knob"].values):
        x = turned(study, knob)
        curves = [
            banded(
                f"noise {noise:g}",
                x,
                gain(here.sel(patch_noise=noise, knob=knob)),
                f"noise {place}",
            )
            for place, noise in enumerate(here["patch_noise"].values)
        ]
        ends = np.array([x.min(), x.max()])
        level = np.full(2, NO_HELP)
        curves.append(Curve(f"no help: {NO_HELP:g}", ends, level, role="bound", style="dotted"))
        panels.append(
            Lines(
                curves,
                x_label=X_LABELS[knob],
                y_label="error saved by fine labels",
                title=TITLES[knob],
                x_log=knob == "starved",
            )
        )
    return Picture(
        "gain",
        "How much of the gain is left",
        "Error of clean coarse labels minus that of the fine labels, on a test set of which half "
        "is hard. Below the dotted line fine labels are no help, below 0 they do harm. Bands: "
        f"95 % over {seeds_in_words(here)}, paired by seed.",
        panels,
    )


def labels_tables(study: GranularityLabels, results: xr.Dataset) -> list[Table]:
    here = results.sel(variation=AS_CHOSEN)
    rows = []
    for noise in here["patch_noise"].values:
        for knob in (str(word) for word in here["knob"].values):
            one = here.sel(patch_noise=noise, knob=knob)
            gained, end = gain(one), one.isel(read=-1)
            for place, words in enumerate(words_of(study, knob)):
                cell = end.isel(turn=place)
                rows.append(
                    (
                        f"{noise:g}",
                        knob,
                        words,
                        f"{float(cell['loss'].sel(labels='fine').mean()):.3g}",
                        *(
                            shown(cell[f"{kind}_error"].sel(labels=labels).values)
                            for kind in ("easy", "hard")
                            for labels in LABELS
                        ),
                        shown(gained[:, place]),
                    )
                )
    errors = Table(
        "knobs",
        "Errors and gain, turn by turn",
        f"After {study.steps} updates; the gain is on a test set of which half is hard. Means with "
        f"95 % intervals over {seeds_in_words(results)}.",
        (
            "noise",
            "knob",
            "fine labels",
            "fine: training loss",
            "coarse: easy error",
            "fine: easy error",
            "coarse: hard error",
            "fine: hard error",
            "gain",
        ),
        rows,
    )
    error = mixed_error(results.sel(patch_noise=study.main_noise).isel(read=-1))
    saved = error.sel(labels="coarse") - error.sel(labels="fine")
    knobs = [str(word) for word in results["knob"].values]
    sensitivity = sensitivity_table(
        results,
        {
            "gain, clean": saved.sel(knob=knobs[0]).isel(turn=0),
            **{
                f"gain, {words_of(study, knob)[-1]}": saved.sel(knob=knob).isel(turn=-1)
                for knob in knobs
            },
        },
        f"Gain on a test set of which half is hard, noise {study.main_noise:g}.",
    )
    premise = premise_table(
        study.at_noise(study.main_noise), study.subclasses, f", noise {study.main_noise:g}"
    )
    return [errors, sensitivity, premise]
