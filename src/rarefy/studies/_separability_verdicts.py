"""Verdicts of ``contrast-separability``: C16 in three forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import Trend
from rarefy.measure.statistics import judge_difference, judge_trend
from rarefy.measure.strata import pooled, stratified_trend
from rarefy.studies._alignment_verdicts import bias_name
from rarefy.studies._downstream_verdicts import judged_reads

if TYPE_CHECKING:
    from rarefy.studies.contrast_separability import ContrastSeparability

WORDS = {"sign": "positive sign from f", "presence": "presence from |f|"}
MOST = 4
"""Features with so many pure neurons or more are compared as one level."""


def by_feature(values: xr.DataArray) -> np.ndarray:
    """(eps_min, seed, feature) array of one quantity."""
    return values.transpose("eps_min", "seed", "feature").values


def within_groups(
    study: ContrastSeparability,
    count: xr.DataArray,
    quality: xr.DataArray,
    permutations: int = 9999,
) -> Trend:
    """Among features of one group in runs of one eps_min."""
    x, y = by_feature(count), by_feature(quality)
    return stratified_trend(x, y, study.groups(), MOST, permutations)


def all_together(count: xr.DataArray, quality: xr.DataArray) -> Trend:
    return stratified_trend(pooled(by_feature(count)), pooled(by_feature(quality)), most=MOST)


def separability_verdicts(
    study: ContrastSeparability, results: xr.Dataset, scale: str
) -> list[Verdict]:
    found = []
    for bias in results["bias_scale"].values:
        for read in judged_reads(study):
            for reading in results["reading"].values:
                here = results.sel(bias_scale=bias, reading=reading)
                where = f"{WORDS[str(reading)]}, step {read}, {bias_name(bias)}, {study.setting}"
                found += _judged(study, here, read, scale, where)
    return found


def _judged(
    study: ContrastSeparability, here: xr.Dataset, read: int, scale: str, where: str
) -> list[Verdict]:
    at = here.sel(read=read)
    count, quality = at["pure"], at["accuracy"]
    share = float((by_feature(quality) == 1).mean())
    note = f"balanced accuracy; pure: operational set; {share:.0%} of probes are perfect"
    found = [
        judge_trend(
            ("C16", study.name, scale, f"within groups, {where}"),
            within_groups(study, count, quality),
            "increasing",
            note=f"{note}; same eps_min, same group of features, whole runs exchanged",
        ),
        judge_trend(
            ("C16", study.name, scale, f"all together, {where}"),
            all_together(count, quality),
            "increasing",
            note=f"{note}; eps_min changes both, so this does not show that one makes the other",
        ),
    ]
    if study.reads[0] == 0 and read > 0:
        untrained = here.sel(read=0)
        gain = (quality - untrained["accuracy"]).mean("feature")
        found.append(
            judge_difference(
                ("C16", study.name, scale, f"against the untrained network, {where}"),
                gain.values,
                "positive",
                note="balanced accuracy minus that of the untrained network, which has "
                f"{float(untrained['pure'].mean()):.2g} pure neurons a feature (trained: "
                f"{float(count.mean()):.2g}); mean over features",
            )
        )
    return found
