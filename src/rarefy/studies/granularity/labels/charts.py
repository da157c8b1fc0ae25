"""Pictures and tables of ``granularity-labels``."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity import charts as lab
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.labels.claims import THINNED, gain, turns_in_words
from rarefy.studies.granularity.labels.experiment import LabelsExperiment
from rarefy.studies.granularity.stored_sets import COUNTS, STAGES, error_of
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import by_seed, texts
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
STYLES = {"hard": "solid", "easy": "dashed"}


def pictures(experiment: LabelsExperiment, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    return [_gains(experiment, here), _errors(experiment, here, experiment.main_noise)]


def _panels(
    here: xr.Dataset, y_label: str, curves: Callable[[str, str], list[Curve]]
) -> list[Lines]:
    """One per stage and knob."""
    found = []
    for stage, knob in product(STAGES, texts(here, "knob")):
        title, x_log = f"{knob}, {stage} fine-tuning", knob == "starved"
        found.append(Lines(curves(stage, knob), X_LABELS[knob], y_label, title, x_log))
    return found


def _errors(study: LabelsExperiment, here: xr.Dataset, noise: float) -> Picture:
    there = here.sel(patch_noise=noise)

    def curves(stage: str, knob: str) -> list[Curve]:
        found = []
        for kind, labels in product(("hard", "easy"), LABELS):
            values = by_seed(error_of(there, kind, stage).sel(knob=knob, labels=labels), "turn")
            label, style = f"{labels} labels, {kind} samples", STYLES[kind]
            found.append(
                lab.share_curve(label, study.turns(knob), values, lab.ROLES[labels], style)
            )
        return found

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
        _panels(there, "error (share of samples)", curves),
    )


def _gains(study: LabelsExperiment, here: xr.Dataset) -> Picture:
    def curves(stage: str, knob: str) -> list[Curve]:
        x, found = study.turns(knob), []
        for place, noise in enumerate(here["patch_noise"].values):
            gained = gain(here.sel(patch_noise=noise, knob=knob), stage)
            found.append(mean_curve(f"noise {noise:g}", x, gained, f"noise {place}"))
        return [*found, lab.level(f"counts: {COUNTS:g}", [min(x), max(x)], COUNTS, "bound")]

    return Picture(
        "gain",
        "How much of the gain is left",
        "Error of clean coarse labels minus that of fine labels of the same samples, on a test set "
        "of which half is hard. Below the dotted line a gain does not count, below 0 fine labels "
        f"do harm. {KNOBS_SAID}Upper row: after {study.steps} updates with these labels. Lower "
        f"row: after {study.tune_steps} more on the clean coarse question, the paper's comparison. "
        f"Bands: 95 % over {seeds_in_words(here)}, paired by seed.",
        _panels(here, "error saved by fine labels", curves),
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
