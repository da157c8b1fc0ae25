"""Verdicts of ``granularity-extreme`` (G6): does one label a sample hurt, and is it only slower?

The paper compares networks after fine-tuning on the coarse question, with pre-training on that
question as the baseline (004 Table 1). Here both are judged, before and after it.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Identity, judge_bound
from rarefy.studies.granularity.extreme.experiment import ExtremeExperiment
from rarefy.studies.granularity.tuning import COUNTS, STAGES, error_of
from rarefy.studies.granularity.variations import AS_CHOSEN
from rarefy.studies.kit.arrays import by_seed

LEARNT = 0.1
"""Labels count as learnt when the loss is at most this share of what guessing among all labels
costs, log(labels): granularities are compared at the first read where that is so."""
SAMPLES = {"hard": "hard samples", "easy": "easy samples", "mixed": "half easy, half hard samples"}
COMPARED = {"coarse": ("hard", "easy", "mixed"), "fine": ("hard", "easy")}
"""What one label a sample is compared with, and on which samples."""


def extreme_verdicts(study: ExtremeExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    found: list[Verdict] = []
    for noise in results["patch_noise"].values:
        found += _at_noise(study, here.sel(patch_noise=noise), scale, float(noise))
    return found


def _at_noise(
    study: ExtremeExperiment, here: xr.Dataset, scale: str, noise: float
) -> list[Verdict]:
    def identity(what: str) -> Identity:
        return ("G6", study.name, scale, f"{study.setting}, noise {noise:g}: {what}")

    places = {"coarse": 1, "fine": study.subclasses}
    notes = {"before": _shares(study, here), "after": _tuned(study)}
    found = []
    for stage in STAGES:
        when = f"{stage} fine-tuning"
        for labels, kinds in COMPARED.items():
            for kind in kinds:
                found.append(
                    _counts(
                        identity(
                            f"{when}, {SAMPLES[kind]}: error with one label a sample minus "
                            f"that with {labels} labels"
                        ),
                        difference(here, kind, stage, study.most, places[labels]),
                        notes[stage],
                    )
                )
        found.append(
            _counts(
                identity(
                    f"{when}, {SAMPLES['hard']}: error with coarse labels minus that with "
                    "fine labels, the other arm of the U"
                ),
                difference(here, "hard", stage, 1, study.subclasses),
                notes[stage],
            )
        )
    alike = f"first read with at most {LEARNT:g} of the loss of guessing"
    one, other = (when_learnt(here, "hard_error", each) for each in (study.most, study.subclasses))
    found.append(
        _counts(
            identity(
                f"before fine-tuning, {alike}, {SAMPLES['hard']}: error with one label a "
                "sample minus that with fine labels"
            ),
            one - other,
            _unlearnt(here, study.most, study.subclasses),
        )
    )
    return found


def _counts(identity: Identity, loss: np.ndarray, note: str) -> Verdict:
    """Error is lost, and so much that it counts."""
    return judge_bound(identity, loss, COUNTS, "at_least", note=note)


def difference(here: xr.Dataset, kind: str, stage: str, one: int, other: int) -> np.ndarray:
    """Error with ``one`` label a side minus that with ``other``, (seed, ...): paired by seed."""
    error = error_of(here, kind, stage)
    return by_seed(error.sel(per_side=one)) - by_seed(error.sel(per_side=other))


def _shares(study: ExtremeExperiment, here: xr.Dataset) -> str:
    """How much of their labels the networks have learnt at the end."""
    end = here["loss"].isel(read=-1)
    shares = ", ".join(
        f"{name} {float(end.sel(per_side=labels).mean()) / math.log(2 * labels):.2g}"
        for name, labels in (("one a sample", study.most), ("fine", study.subclasses))
    )
    return f"{study.steps} updates; training loss over that of guessing at the end: {shares}"


def _tuned(study: ExtremeExperiment) -> str:
    return f"{study.steps} updates, then {study.tune_steps} on the coarse question for all networks"


def when_learnt(here: xr.Dataset, name: str, per_side: int) -> np.ndarray:
    """The value at the first read where the labels are learnt, (seed,); NaN where they never are.
    The choice looks at the training loss alone."""
    one = here.sel(per_side=per_side).transpose("seed", "read")
    learnt = one["loss"].values <= LEARNT * math.log(2 * per_side)
    first = learnt.argmax(axis=1)
    values = one[name].values[np.arange(len(first)), first]
    return np.where(learnt.any(axis=1), values, np.nan)


def _unlearnt(here: xr.Dataset, *granularities: int) -> str:
    """How many runs never learnt their labels."""
    counts = [int(np.isnan(when_learnt(here, "loss", each)).sum()) for each in granularities]
    if not any(counts):
        return "all runs learnt their labels"
    said = ", ".join(
        f"{count} with {each} a side" for count, each in zip(counts, granularities, strict=True)
    )
    return f"runs that never learnt their labels: {said}"
