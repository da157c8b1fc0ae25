"""Verdicts of ``granularity-extreme`` (G6): does one label per sample hurt?

The paper compares networks after fine-tuning on the coarse question, with pre-training on that
question as the baseline (004 Table 1). Primary is that comparison, on a test set of which half is
hard, at the noise at which samples differ most: what tells them apart is then noise alone.
"""

from __future__ import annotations

import math

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_difference
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.extreme.experiment import ExtremeExperiment
from rarefy.studies.granularity.stored_sets import error_of
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.reading import Naming


def verdicts(experiment: ExtremeExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    main, found = experiment.main_noise, []
    for noise in results["patch_noise"].values:
        here = results.sel(variation=AS_CHOSEN, patch_noise=noise)
        roles = ("G6.1", "G6.2") if noise == main else ("G6", "G6")
        for role, labels in zip(roles, experiment.compared, strict=True):
            where = f"noise {noise:g}, {experiment.setting}: "
            found.append(_harm(experiment, here, Naming(experiment, scale, where), role, labels))
    here = results.sel(patch_noise=main)
    where = f"before fine-tuning, noise {main:g}, {experiment.setting}: "
    before = here.sel(variation=AS_CHOSEN)
    named = Naming(experiment, scale, where)
    found.append(_harm(experiment, before, named, "G6", "coarse", "before"))
    for variation in texts(results, "variation"):
        if variation != AS_CHOSEN:
            named = Naming(
                experiment, scale, f"{variation}, noise {main:g}, {experiment.setting}: "
            )
            changed = here.sel(variation=variation)
            found.append(_harm(experiment, changed, named, "G6", "coarse"))
    return found


def _harm(
    study: ExtremeExperiment,
    here: xr.Dataset,
    named: Naming,
    role: str,
    labels: str,
    stage: str = "after",
) -> Verdict:
    lost = by_seed(difference(here, "mixed", stage, study.most, study.compared[labels]))
    what = f"error with one label a sample minus that with {labels} labels, half hard samples"
    return judge_difference(named(role, what), lost, "positive", note=_means(study, here, stage))


def difference(here: xr.Dataset, kind: str, stage: str, one: int, other: int) -> xr.DataArray:
    """Error with ``one`` label per side minus that with ``other``, paired by seed."""
    error = error_of(here, kind, stage)
    return error.sel(per_side=one, drop=True) - error.sel(per_side=other, drop=True)


def _means(study: ExtremeExperiment, here: xr.Dataset, stage: str) -> str:
    """Errors, and how much of its labels the finest network has learnt."""
    error = error_of(here, "mixed", stage)
    several = {**study.compared, "one a sample": study.most}
    said = ", ".join(
        f"{name} {float(error.sel(per_side=labels).mean()):.3f}" for name, labels in several.items()
    )
    end = float(here["loss"].isel(read=-1).sel(per_side=study.most).mean())
    share = end / math.log(2 * study.most)
    return f"errors: {said}; one a sample has {share:.2g} of the loss of guessing left"
