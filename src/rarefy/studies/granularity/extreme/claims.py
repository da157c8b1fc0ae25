"""Verdicts of ``granularity-extreme`` (G6): does one label per sample hurt, and is it only slower?

The paper compares networks after fine-tuning on the coarse question, with pre-training on that
question as the baseline (004 Table 1). Here both are judged, before and after it.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_bound
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.extreme.experiment import ExtremeExperiment
from rarefy.studies.granularity.stored_sets import COUNTS, error_of
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming

LEARNT = 0.1
"""Labels count as learnt when the loss is at most this share of what guessing among all labels
costs, log(labels): granularities are compared at the first read where that is so."""
SAMPLES = {"hard": "hard samples", "easy": "easy samples", "mixed": "half easy, half hard samples"}
KINDS = {"coarse": ("hard", "easy", "mixed"), "fine": ("hard", "easy")}
"""On which samples one label per sample is compared with others."""


def verdicts(experiment: ExtremeExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    return [
        verdict
        for noise in results["patch_noise"].values
        for verdict in _at_noise(experiment, here.sel(patch_noise=noise), scale)
    ]


def _at_noise(study: ExtremeExperiment, here: xr.Dataset, scale: str) -> list[Verdict]:
    """Error is lost, and so much that it counts."""
    named = Naming(study, scale, f"{study.setting}, noise {float(here['patch_noise']):g}: ")

    def judged(what: str, lost: np.ndarray, note: str) -> Verdict:
        return judge_bound(named("G6", what), lost, COUNTS, "at_least", note=note)

    then = f"{study.steps} updates, then {study.tune_steps} on the coarse question for all networks"
    one = "error with one label a sample minus that with"
    compared = [
        (kind, f"{one} {labels} labels", study.most, study.compared[labels])
        for labels, kinds in KINDS.items()
        for kind in kinds
    ]
    other = "error with coarse labels minus that with fine labels, the other arm of the U"
    compared.append(("hard", other, 1, study.subclasses))
    found = []
    for stage, note in {"before": _shares(study, here), "after": then}.items():
        for kind, what, *both in compared:
            lost = by_seed(difference(here, kind, stage, *both))
            found.append(judged(f"{stage} fine-tuning, {SAMPLES[kind]}: {what}", lost, note))
    single, fine = (here.sel(per_side=each) for each in (study.most, study.subclasses))
    first = f"first read with at most {LEARNT:g} of the loss of guessing, {SAMPLES['hard']}"
    lost = when_learnt(single, "hard_error") - when_learnt(fine, "hard_error")
    what = f"before fine-tuning, {first}: {one} fine labels"
    return [*found, judged(what, lost, _unlearnt(single, fine))]


def difference(here: xr.Dataset, kind: str, stage: str, one: int, other: int) -> xr.DataArray:
    """Error with ``one`` label per side minus that with ``other``, paired by seed."""
    error = error_of(here, kind, stage)
    return error.sel(per_side=one, drop=True) - error.sel(per_side=other, drop=True)


def _shares(study: ExtremeExperiment, here: xr.Dataset) -> str:
    """How much of their labels the networks have learnt at the end."""
    end = here["loss"].isel(read=-1)
    shares = ", ".join(
        f"{name} {float(end.sel(per_side=labels).mean()) / math.log(2 * labels):.2g}"
        for name, labels in (("one a sample", study.most), ("fine", study.subclasses))
    )
    return f"{study.steps} updates; training loss over that of guessing at the end: {shares}"


def when_learnt(one: xr.Dataset, name: str) -> np.ndarray:
    """The value at the first read where the labels of a granularity are learnt, (seed,); NaN where
    they never are. The choice looks at the training loss alone."""
    learnt = by_seed(one["loss"], "read") <= LEARNT * math.log(2 * int(one["per_side"]))
    first = learnt.argmax(axis=1)
    values = by_seed(one[name], "read")[np.arange(len(first)), first]
    return np.where(learnt.any(axis=1), values, np.nan)


def _unlearnt(*granularities: xr.Dataset) -> str:
    """How many runs never learnt their labels."""
    counts = {
        int(each["per_side"]): int(np.isnan(when_learnt(each, "loss")).sum())
        for each in granularities
    }
    if not any(counts.values()):
        return "all runs learnt their labels"
    said = ", ".join(f"{count} with {per_side} a side" for per_side, count in counts.items())
    return f"runs that never learnt their labels: {said}"
