"""Tables of ``granularity-extreme``."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.studies.granularity.common import sensitivity_table
from rarefy.studies.granularity.extreme.claims import COMPARED, LEARNT, when_learnt
from rarefy.studies.granularity.extreme.experiment import ExtremeExperiment
from rarefy.studies.granularity.premises import premise_table
from rarefy.studies.granularity.setting import PATCHES_AND_RATE
from rarefy.studies.granularity.tuning import STAGES, error_of, tuned_setting
from rarefy.studies.granularity.variations import AS_CHOSEN
from rarefy.studies.kit.words import seeds_in_words, shown


def extreme_tables(study: ExtremeExperiment, results: xr.Dataset) -> list[Table]:
    here = study.at_noise(study.main_noise)
    premise = premise_table(here, study.subclasses, f", noise {study.main_noise:g}")
    setting = tuned_setting(here, study.tune_steps)
    return [_errors(study, results), _sensitivity(study, results), setting, premise]


def _errors(study: ExtremeExperiment, results: xr.Dataset) -> Table:
    here = results.sel(variation=AS_CHOSEN)
    rows = []
    for noise in here["patch_noise"].values:
        for per_side in here["per_side"].values:
            one = here.sel(patch_noise=noise)
            cell = one.sel(per_side=per_side)
            loss = float(cell["loss"].isel(read=-1).mean())
            learnt = when_learnt(one, "hard_error", int(per_side))
            rows.append(
                (
                    f"{noise:g}",
                    int(per_side),
                    f"{loss:.3g}",
                    f"{loss / math.log(2 * per_side):.2g}",
                    *(
                        shown(error_of(cell, kind, stage).values)
                        for stage in STAGES
                        for kind in ("easy", "hard")
                    ),
                    shown(learnt) if np.isfinite(learnt).any() else "never learnt",
                    f"{int(np.isfinite(learnt).sum())} of {len(learnt)}",
                )
            )
    return Table(
        "granularity",
        "Errors by granularity",
        f"After {study.steps} updates (before fine-tuning) and after {study.tune_steps} more on "
        "the coarse question; besides, at the first read where the training loss is at most "
        f"{LEARNT:g} of log(labels). Means with 95 % intervals over {seeds_in_words(results)}.",
        (
            "noise",
            "labels a side",
            "training loss",
            "over guessing's",
            *(f"{kind} error, {stage}" for stage in STAGES for kind in ("easy", "hard")),
            "hard error when learnt",
            "runs that learnt",
        ),
        rows,
    )


def _sensitivity(study: ExtremeExperiment, results: xr.Dataset) -> Table:
    there = results.sel(patch_noise=study.main_noise)
    places = {"coarse": 1, "fine": study.subclasses}
    columns = {}
    for labels, kinds in COMPARED.items():
        for kind in kinds:
            error = error_of(there, kind, "after")
            columns[f"{kind}: one a sample minus {labels}"] = error.sel(
                per_side=study.most
            ) - error.sel(per_side=places[labels])
    hard = error_of(there, "hard", "after")
    columns["hard: coarse minus fine"] = hard.sel(per_side=1) - hard.sel(per_side=study.subclasses)
    return sensitivity_table(
        results,
        columns,
        f"Differences of errors after fine-tuning, paired by seed, noise {study.main_noise:g}. "
        f"{PATCHES_AND_RATE}",
    )
