"""Tables of ``granularity-ablation``."""

from __future__ import annotations

import math
from itertools import product

import xarray as xr

from rarefy.core.picture import Table
from rarefy.studies.granularity import charts as lab
from rarefy.studies.granularity.ablation import arms
from rarefy.studies.granularity.ablation.experiment import AblationExperiment
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words, shown


def tables(experiment: AblationExperiment, results: xr.Dataset) -> list[Table]:
    here = results.sel(variation=AS_CHOSEN)
    found = [_learners(experiment, here.isel(read=-1))]
    worlds = {world: experiment.in_world(world) for world in texts(results, "world")}
    about = [lab.setting_table(experiment, **worlds)]
    if "noisy" in worlds:
        noisy = results.sel(world="noisy", labels="fine").isel(read=-1)
        found.append(_sensitivity(experiment, noisy))
        about.append(lab.premise_table(worlds["noisy"], experiment.subclasses, ", noisy world"))
    return [*found, *about]


def _learners(study: AblationExperiment, end: xr.Dataset) -> Table:
    rows = []
    for world, word in product(texts(end, "world"), texts(end, "arm")):
        if word == "tuned":
            continue
        one, arm = end.sel(world=world, arm=word), arms.Arm.parse(word, study.d)
        row = {
            "world": world,
            "learner": word,
            "rate": f"{arm.rate:.2g}" if arms.rate_of(word) else "",
            "fine: training loss": f"{float(one['loss'].sel(labels='fine').mean()):.3g}",
        }
        for labels, kind in product(("fine", "coarse"), ("easy", "hard")):
            row[f"{labels}: {kind} error"] = shown(one[f"{kind}_error"].sel(labels=labels).values)
        rows.append(row)
    return table(
        "learners",
        "Errors by learner",
        f"After {study.steps} updates. paper: the rate of (18), 1/log^5(d) = "
        f"{1 / math.log(study.d) ** 5:.2g}. A hard-coded bias falls as detectors of common "
        f"features grow with coarse labels, {study.subclasses} times as fast as with fine ones. "
        "The linear network's learning rate is "
        f"{arms.awake_share(study):.2g} of the others', the share of neurons that a feature wakes "
        "at the start, times the number in its name. Means with 95 % intervals over "
        f"{seeds_in_words(end)}.",
        rows,
    )


def _sensitivity(study: AblationExperiment, end: xr.Dataset) -> Table:
    columns = {
        f"{name}: {kind} error": end[f"{kind}_error"].sel(arm=name)
        for name in study.main_arms
        if name in end["arm"].values
        for kind in ("easy", "hard")
    }
    return lab.sensitivity_table(
        end, columns, f"Fine labels in the noisy world. {lab.PATCHES_AND_RATE}"
    )
