"""Pictures and tables of ``granularity-labels``."""

from __future__ import annotations

from itertools import product

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity import charts as lab
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.labels.claims import THINNED, gain, turns_in_words
from rarefy.studies.granularity.labels.experiment import LabelsExperiment
from rarefy.studies.granularity.stored_sets import COUNTS, STAGES, error_of
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words, shown

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


def pictures(experiment: LabelsExperiment, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    return [_gains(experiment, here)]


def _gains(study: LabelsExperiment, here: xr.Dataset) -> Picture:
    panels, y_label = [], "error saved by fine labels"
    for stage, knob in product(STAGES, texts(here, "knob")):
        x, curves = study.turns(knob), []
        for place, noise in enumerate(here["patch_noise"].values):
            gained = gain(here.sel(patch_noise=noise, knob=knob), stage)
            curves.append(mean_curve(f"noise {noise:g}", x, gained, f"noise {place}"))
        curves.append(lab.level(f"counts: {COUNTS:g}", [min(x), max(x)], COUNTS, "bound"))
        title, x_log = f"{knob}, {stage} fine-tuning", knob == "starved"
        panels.append(Lines(curves, X_LABELS[knob], y_label, title, x_log))
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


def tables(experiment: LabelsExperiment, results: xr.Dataset) -> list[Table]:
    found = [_errors_table(experiment, results), _sensitivity(experiment, results)]
    return [*found, *lab.stored_set_tables(experiment)]


def _errors_table(study: LabelsExperiment, results: xr.Dataset) -> Table:
    here = results.sel(variation=AS_CHOSEN)
    rows = []
    for noise, knob in product(here["patch_noise"].values, texts(here, "knob")):
        one = here.sel(patch_noise=noise, knob=knob)
        for (place, words), stage in product(enumerate(turns_in_words(study, knob)), STAGES):
            cell = one.isel(turn=place)
            loss = float(cell["loss"].isel(read=-1).sel(labels="fine").mean())
            row = {"noise": f"{noise:g}", "knob": knob, "fine labels": words, "fine-tuning": stage}
            row["fine: training loss"] = f"{loss:.3g}" if stage == "before" else ""
            for kind, labels in product(("easy", "hard"), LABELS):
                error = error_of(cell, kind, stage).sel(labels=labels)
                row[f"{labels}: {kind} error"] = shown(error.values)
            rows.append({**row, "gain": shown(gain(one, stage)[:, place])})
    return table(
        "knobs",
        "Errors and gain, turn by turn",
        f"Before fine-tuning: after {study.steps} updates with the labels named; after it: "
        f"{study.tune_steps} more on the coarse question. The gain is on a test set of which half "
        f"is hard. Starved: {THINNED}. Means with 95 % intervals over {seeds_in_words(results)}.",
        rows,
    )


def _sensitivity(study: LabelsExperiment, results: xr.Dataset) -> Table:
    there, columns = results.sel(patch_noise=study.main_noise), {}
    for stage in STAGES:
        error = error_of(there, "mixed", stage)
        saved = error.sel(labels="coarse") - error.sel(labels="fine")
        columns[f"clean, {stage}"] = saved.isel(knob=0, turn=0)
        for knob in texts(results, "knob"):
            spoilt = turns_in_words(study, knob)[-1]
            columns[f"{spoilt}, {stage}"] = saved.sel(knob=knob).isel(turn=-1)
    return lab.sensitivity_table(
        results,
        columns,
        "Gain of fine over coarse labels on a test set of which half is hard, before and after "
        f"fine-tuning, noise {study.main_noise:g}. {lab.PATCHES_AND_RATE}",
    )
