"""Tables of ``granularity-ablation``."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.studies.granularity import charts as lab
from rarefy.studies.granularity.ablation import arms
from rarefy.studies.granularity.ablation.experiment import TUNED, AblationExperiment
from rarefy.studies.granularity.ablation.watch import DETECTORS
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.premises import noise_load
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words, shown


def tables(experiment: AblationExperiment, results: xr.Dataset) -> list[Table]:
    here = results.sel(variation=AS_CHOSEN)
    found = [make(experiment, here.isel(read=-1)) for make in (_learners, _linear)]
    worlds = {world: experiment.in_world(world) for world in texts(results, "world")}
    about = [lab.setting_table(experiment, **worlds)]
    if "quiet" in worlds:
        found.append(_tuning(experiment, here.sel(world="quiet", arm="tuned")))
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
        matched = f"{arms.matched_rate(arm.rate, study.subclasses):.2g}"
        row = {
            "world": world,
            "learner": word,
            "rate": f"{arm.rate:.2g}" if arms.rate_of(word) else "",
            "matched rate, fine labels": matched if arm.kind == "scheduled" else "",
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
        "features grow with coarse labels; with fine ones these grow "
        f"{study.subclasses} times more slowly, so that it falls like one that follows them at the "
        "matched rate. The linear network's learning rate is "
        f"{arms.awake_share(study):.2g} of the others', the share of neurons that a feature wakes "
        "at the start, times the number in its name. Means with 95 % intervals over "
        f"{seeds_in_words(end)}.",
        rows,
    )


def _linear(study: AblationExperiment, end: xr.Dataset) -> Table:
    names = [word for word in texts(end, "arm") if word.startswith("linear")]
    columns, rows = list(product(LABELS, names)), []
    for world, kind in product(texts(end, "world"), ("easy", "hard")):
        there = study.in_world(world)
        best, formula = arms.linear_readout(there), "not known"
        if best is not None:
            formula = f"{best.easy_error() if kind == 'easy' else best.hard_floor:.3g}"
        error = end[f"{kind}_error"].sel(world=world)
        values = (shown(error.sel(arm=arm, labels=labels).values) for labels, arm in columns)
        rows.append((world, f"{noise_load(there):.3g}", kind, formula, *values))
    return Table(
        "linear",
        "How little a network without ReLU can err",
        "The formula is the least error of a weighted sum of a side's features over all patches "
        "(004 App. B.2, remark 3); for easy and for hard samples with weights of their own. "
        "Trained networks beside it, by learning rate: with coarse labels they are such sums, "
        "with fine labels they answer by the largest of several, which can err less. "
        f"Means with 95 % intervals over {seeds_in_words(end)}.",
        ("world", "P sigma", "samples", "best sum, formula", *map(": ".join, columns)),
        rows,
    )


def _tuning(study: AblationExperiment, here: xr.Dataset) -> Table:
    rows = []
    for labels in LABELS:
        one = here.sel(labels=labels)
        for name in (*TUNED, *DETECTORS):
            start, end = (np.asarray(one[name].isel(tuned=place).values) for place in (0, -1))
            meaning = DETECTORS.get(name) or f"error on {name.split('_')[1]} samples"
            rows.append((labels, meaning, shown(start), shown(end), shown(end - start)))
    return Table(
        "tuning",
        "Before and after coarse fine-tuning",
        f"Quiet world, {study.tune_steps} updates of fine-tuning. S(v): all neurons that v wakes "
        "at the start; the paper speaks of those that nothing else wakes, S*(v), which are rare at "
        f"this size. Means with 95 % intervals over {seeds_in_words(here)}; differences are "
        "paired by seed.",
        ("trained with", "what", "before", "after", "after minus before"),
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
