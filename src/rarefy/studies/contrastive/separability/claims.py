"""Verdicts of ``contrast-separability``: C16 in four forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_difference, judge_trend
from rarefy.measure.strata import pooled, stratified_trend
from rarefy.measure.trends import Trend
from rarefy.studies.contrastive.downstream_claims import judged_reads
from rarefy.studies.contrastive.separability.experiment import SeparabilityExperiment
from rarefy.studies.contrastive.setting import GROUPS
from rarefy.studies.contrastive.words import bias_name

WORDS = {"sign": "positive sign from f", "presence": "presence from |f|"}
MOST = 4
"""Features with so many pure neurons or more are compared as one level."""
CEILING = 0.999
"""Accuracy of the untrained network from which on a gain over it cannot be asked for."""


def by_feature(values: xr.DataArray) -> np.ndarray:
    """(eps_min, seed, feature) array of one quantity."""
    return values.transpose("eps_min", "seed", "feature").values


def within_groups(
    study: SeparabilityExperiment,
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
    study: SeparabilityExperiment, results: xr.Dataset, scale: str
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
    study: SeparabilityExperiment, here: xr.Dataset, read: int, scale: str, where: str
) -> list[Verdict]:
    at = here.sel(read=read)
    count, quality = at["pure"], at["accuracy"]
    note = f"balanced accuracy; pure: operational set; {_perfect(quality)}"
    inside = f"{note}; same eps_min, same group of features, whole runs exchanged"
    found = [
        judge_trend(
            ("C16", study.name, scale, f"within groups, {where}"),
            within_groups(study, count, quality),
            "increasing",
            note=inside,
        ),
        judge_trend(
            ("C16", study.name, scale, f"within groups, features with a pure neuron, {where}"),
            within_groups(study, count.where(count >= 1), quality),
            "increasing",
            note=f"{inside}; does a second pure neuron help?",
        ),
        judge_trend(
            ("C16", study.name, scale, f"all together, {where}"),
            all_together(count, quality),
            "increasing",
            note=f"{note}; eps_min changes both, so this does not show that one makes the other",
        ),
    ]
    if study.reads[0] == 0 and read > 0:
        for group in GROUPS:
            part = here.isel(feature=study.groups() == group)
            found += _against_untrained(study, part, read, scale, f"{group}, {where}")
    return found


def _perfect(quality: xr.DataArray) -> str:
    """Share of perfect probes, and how many there are none of."""
    values = by_feature(quality)
    known = np.isfinite(values)
    share = float((values[known] == 1).mean()) if known.any() else np.nan
    missing = "" if known.all() else f", {(~known).sum()} of {known.size} missing"
    return f"{share:.0%} of probes are perfect{missing}"


def _against_untrained(
    study: SeparabilityExperiment, here: xr.Dataset, read: int, scale: str, where: str
) -> list[Verdict]:
    """Gain of the features of one group over the untrained network: over all eps_min, and at the
    eps_min where it is least, since a mean hides gains and losses that cancel."""
    quality, control = (here["accuracy"].sel(read=r).mean("feature") for r in (read, 0))
    gain = quality - control
    pure = [float(here["pure"].sel(read=r).mean()) for r in (0, read)]
    thresholds = float(here["bias_scale"]) > 0
    note = (
        "balanced accuracy minus that of the untrained network, mean over the group's features; "
        f"pure neurons a feature: {pure[0]:.2g} untrained, {pure[1]:.2g} trained"
    )
    if thresholds:
        note += "; confounded: the trained network has thresholds, the untrained one none"
    means = gain.mean("seed")
    if not np.isfinite(means.values).any():
        least = float(gain["eps_min"][0])
    else:
        least = float(gain["eps_min"][int(means.argmin("eps_min"))])
    level = 1 - 0.05 / gain.sizes["eps_min"]  # Bonferroni: the least is chosen after looking
    chosen = (
        (f"mean over eps_min, {where}", gain, control, 0.95, note),
        (
            f"where least, {where}",
            gain.sel(eps_min=least),
            control.sel(eps_min=least),
            level,
            f"at eps_min={least:g}, {100 * level:.4g} % interval; {note}",
        ),
    )
    return [
        _unless_at_ceiling(
            judge_difference(
                ("C16", study.name, scale, f"against the untrained network, {setting}"),
                difference.values,
                "positive",
                level,
                words,
            ),
            float(start.mean()),
        )
        for setting, difference, start, level, words in chosen
    ]


def _unless_at_ceiling(verdict: Verdict, control: float) -> Verdict:
    if not control >= CEILING:
        return verdict
    why = f"the untrained network is at the ceiling ({control:.4f}): nothing can be gained"
    return replace(verdict, outcome="inconclusive", note=f"{verdict.note}; {why}")
