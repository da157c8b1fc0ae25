"""Verdicts of ``granularity-extreme`` (G6): does one label a sample hurt, and is it only slower?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Identity, judge_difference
from rarefy.studies.granularity._common import by_seed
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_extreme import GranularityExtreme

LEARNT = 0.1
"""Labels count as learnt when the loss is at most this share of what guessing among all labels
costs, log(labels): granularities are compared at the first read where that is so."""


def extreme_verdicts(study: GranularityExtreme, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    found: list[Verdict] = []
    for noise in results["patch_noise"].values:
        found += _at_noise(study, here.sel(patch_noise=noise), scale, float(noise))
    return found


def _at_noise(
    study: GranularityExtreme, here: xr.Dataset, scale: str, noise: float
) -> list[Verdict]:
    def identity(what: str) -> Identity:
        return ("G6", study.name, scale, f"{study.setting}, noise {noise:g}: {what}")

    end = here.isel(read=-1)
    reached = {
        name: float(end["loss"].sel(per_side=labels).mean() / math.log(2 * labels))
        for name, labels in (("one a sample", study.most), ("fine", study.subclasses))
    }
    shares = ", ".join(f"{name} {share:.2g}" for name, share in reached.items())
    unlearnt = f"training loss over that of guessing at the end: {shares}"
    alike = f"first read with at most {LEARNT:g} of the loss of guessing"
    fine = study.subclasses
    return [
        _harm(
            identity("hard error, one label a sample minus fine, after equally many updates"),
            _difference(end["hard_error"], study.most, fine),
            unlearnt,
        ),
        _harm(
            identity(f"hard error, one label a sample minus fine, {alike}"),
            when_learnt(here, "hard_error", study.most) - when_learnt(here, "hard_error", fine),
            _unlearnt(here, study.most, fine),
        ),
        _harm(
            identity("easy error, one label a sample minus fine, after equally many updates"),
            _difference(end["easy_error"], study.most, fine),
            unlearnt,
        ),
        _harm(
            identity("easy error, one label a sample minus coarse, after equally many updates"),
            _difference(end["easy_error"], study.most, 1),
            "against the baseline that never sees finer labels",
        ),
        judge_difference(
            identity("hard error, coarse minus fine: the other arm of the U"),
            _difference(end["hard_error"], 1, fine),
            "positive",
        ),
    ]


def _harm(identity: Identity, difference: np.ndarray, note: str) -> Verdict:
    return judge_difference(identity, difference, "positive", note=note)


def _difference(error: xr.DataArray, one: int, other: int) -> np.ndarray:
    return by_seed(error.sel(per_side=one)) - by_seed(error.sel(per_side=other))


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
