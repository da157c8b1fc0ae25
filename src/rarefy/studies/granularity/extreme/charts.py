"""Pictures and tables of ``granularity-extreme``."""

from __future__ import annotations

import math
from itertools import product

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.studies.granularity import charts as lab
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.extreme.claims import difference
from rarefy.studies.granularity.extreme.experiment import ExtremeExperiment
from rarefy.studies.granularity.stored_sets import STAGES, error_of
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words, shown


def pictures(experiment: ExtremeExperiment, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    return [_granularity(experiment, here)]


def _granularity(study: ExtremeExperiment, here: xr.Dataset) -> Picture:
    marks = [(1.0, "coarse"), (float(study.subclasses), "fine"), (float(study.most), "one each")]
    x, y_label, panels = here["per_side"].values, "error (share of samples)", []
    for kind, stage in product(("hard", "easy"), STAGES):
        error, curves = error_of(here, kind, stage), []
        for place, noise in enumerate(here["patch_noise"].values):
            values = by_seed(error.sel(patch_noise=noise), "per_side")
            curves.append(lab.share_curve(f"noise {noise:g}", x, values, f"noise {place}"))
        title = f"{kind} samples, {stage} fine-tuning"
        panels.append(Lines(curves, "labels of each side", y_label, title, x_log=True, marks=marks))
    return Picture(
        "granularity",
        "Error against granularity",
        f"One stored set of {2 * study.most} easy samples, {study.subclasses} subclasses a side, "
        "always the same samples; only their labels change, from the two sides (left mark) over "
        "the subclasses (middle) to one label a sample (right). The network answers with the "
        "side of its largest output. Labels finer than the subclasses can be told apart only by "
        "what differs between samples of one subclass: the strengths of their features and the "
        "noise in their patches. Granularity is overdone where a curve rises again to the right of "
        "the middle mark, and harmful where it ends above its left end. Left: after "
        f"{study.steps} updates with these labels. Right: after {study.tune_steps} more on the "
        f"coarse question, for all networks, as the paper compares. {study.setting}; bands: 95 % "
        f"over {seeds_in_words(here)}.",
        panels,
    )


def tables(experiment: ExtremeExperiment, results: xr.Dataset) -> list[Table]:
    found = [_errors(experiment, results), _sensitivity(experiment, results)]
    return [*found, *lab.stored_set_tables(experiment)]


def _errors(study: ExtremeExperiment, results: xr.Dataset) -> Table:
    here = results.sel(variation=AS_CHOSEN)
    rows = []
    for noise, per_side in product(here["patch_noise"].values, here["per_side"].values):
        cell = here.sel(patch_noise=noise, per_side=per_side)
        loss = float(cell["loss"].isel(read=-1).mean())
        row = {
            "noise": f"{noise:g}",
            "labels a side": int(per_side),
            "training loss": f"{loss:.3g}",
            "over guessing's": f"{loss / math.log(2 * per_side):.2g}",
        }
        for stage, kind in product(STAGES, ("easy", "hard")):
            row[f"{kind} error, {stage}"] = shown(error_of(cell, kind, stage).values)
        rows.append(row)
    return table(
        "granularity",
        "Errors by granularity",
        f"After {study.steps} updates (before fine-tuning) and after {study.tune_steps} more on "
        "the coarse question; over guessing's: training loss over log(labels). Means with 95 % "
        f"intervals over {seeds_in_words(results)}.",
        rows,
    )


def _sensitivity(study: ExtremeExperiment, results: xr.Dataset) -> Table:
    there = results.sel(patch_noise=study.main_noise)
    columns = {
        f"one a sample minus {labels}": difference(there, "mixed", "after", study.most, per_side)
        for labels, per_side in study.compared.items()
    }
    columns["coarse minus fine"] = difference(there, "mixed", "after", 1, study.subclasses)
    return lab.sensitivity_table(
        results,
        columns,
        "Differences of errors after fine-tuning on a test set of which half is hard, paired by "
        f"seed, noise {study.main_noise:g}. "
        f"{lab.PATCHES_AND_RATE}",
    )
