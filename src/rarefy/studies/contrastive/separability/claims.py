"""Verdicts of ``contrast-separability``: C16 in four forms."""

from __future__ import annotations

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
from rarefy.studies.kit.premise import inconclusive
from rarefy.studies.kit.reading import Naming

WORDS = {"sign": "positive sign from f", "presence": "presence from |f|"}
MOST = 4
"""Features with so many pure neurons or more are compared as one level."""
CEILING = 0.999
"""Accuracy of the untrained network from which on a gain over it cannot be asked for."""


def by_feature(values: xr.DataArray) -> np.ndarray:
    """(eps_min, seed, feature) array of one quantity."""
    return values.transpose("eps_min", "seed", "feature").values


def within_groups(
    experiment: SeparabilityExperiment, count: xr.DataArray, quality: xr.DataArray, draw: int = 9999
) -> Trend:
    """Among features of one group in runs of one eps_min; ``draw``: permutations."""
    x, y = by_feature(count), by_feature(quality)
    return stratified_trend(x, y, experiment.groups(), MOST, draw)


def all_together(count: xr.DataArray, quality: xr.DataArray) -> Trend:
    return stratified_trend(pooled(by_feature(count)), pooled(by_feature(quality)), most=MOST)


def verdicts(experiment: SeparabilityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for bias in results["bias_scale"].values:
        for read in judged_reads(experiment):
            for reading in results["reading"].values:
                where = f"{WORDS[str(reading)]}, step {read}, {bias_name(bias)}"
                name = Naming(experiment, scale, after=f", {where}, {experiment.setting}")
                here = results.sel(bias_scale=bias, reading=reading)
                found += _trends(experiment, here.sel(read=read), name)
                if experiment.reads[0] == 0 and read > 0:
                    for group in GROUPS:
                        part = here.isel(feature=experiment.groups() == group)
                        found += _against_untrained(part, read, group, name)
    return found


def _trends(experiment: SeparabilityExperiment, at: xr.Dataset, name: Naming) -> list[Verdict]:
    count, quality = at["pure"], at["accuracy"]
    note = f"balanced accuracy; pure: operational set; {_perfect(quality)}"
    inside = f"{note}; same eps_min, same group of features, whole runs exchanged"
    confounded = f"{note}; eps_min changes both, so this does not show that one makes the other"
    second = within_groups(experiment, count.where(count >= 1), quality)
    which, helps = "within groups, features with a pure neuron", "does a second pure neuron help?"
    return [
        judge_trend(name("C16", what), trend, "increasing", note=said)
        for what, trend, said in (
            ("within groups", within_groups(experiment, count, quality), inside),
            (which, second, f"{inside}; {helps}"),
            ("all together", all_together(count, quality), confounded),
        )
    ]


def _perfect(quality: xr.DataArray) -> str:
    """Share of perfect probes, and how many there are none of."""
    values = by_feature(quality)
    known = np.isfinite(values)
    share = float((values[known] == 1).mean()) if known.any() else np.nan
    missing = "" if known.all() else f", {(~known).sum()} of {known.size} missing"
    return f"{share:.0%} of probes are perfect{missing}"


def _against_untrained(here: xr.Dataset, read: int, group: str, name: Naming) -> list[Verdict]:
    """Gain of the features of one group over the untrained network: over all eps_min, and at the
    eps_min where it is least, since a mean hides gains and losses that cancel."""
    quality, control = (here["accuracy"].sel(read=r).mean("feature") for r in (read, 0))
    gain = quality - control
    pure = [float(here["pure"].sel(read=r).mean()) for r in (0, read)]
    note = (
        "balanced accuracy minus that of the untrained network, mean over the group's features; "
        f"pure neurons a feature: {pure[0]:.2g} untrained, {pure[1]:.2g} trained"
    )
    if float(here["bias_scale"]) > 0:
        note += "; confounded: the trained network has thresholds, the untrained one none"
    means = gain.mean("seed").fillna(np.inf)
    least = {"eps_min": float(gain["eps_min"][int(means.argmin("eps_min"))])}
    level = 1 - 0.05 / gain.sizes["eps_min"]  # Bonferroni: the least is chosen after looking
    there = f"at eps_min={least['eps_min']:g}, {100 * level:.4g} % interval"
    found = []
    for which, difference, start, of, said in (
        ("mean over eps_min", gain, control, 0.95, note),
        ("where least", gain.sel(least), control.sel(least), level, f"{there}; {note}"),
    ):
        identity = name("C16", f"against the untrained network, {which}, {group}")
        verdict = judge_difference(identity, difference.values, "positive", of, said)
        mean = float(start.mean())
        ceiling = f"the untrained network is at the ceiling ({mean:.4f}): nothing can be gained"
        found.append(inconclusive(verdict, ceiling if mean >= CEILING else ""))
    return found
