"""Verdicts of ``contrast-separability``: C16.

Primary: within groups (features of one group at one eps_min, where frequency explains nothing), by
the probe that is linear in f, with the paper's bias, at the step of the figures.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_difference, judge_trend
from rarefy.measure.strata import pooled, stratified_trend
from rarefy.measure.trends import Trend
from rarefy.studies.contrastive.downstream_claims import judged_reads
from rarefy.studies.contrastive.separability.experiment import SeparabilityExperiment
from rarefy.studies.contrastive.words import bias_name, elsewhere
from rarefy.studies.kit.reading import Naming

WORDS = {"sign": "positive sign from f", "presence": "presence from |f|"}
MOST = 4
"""Features with so many pure neurons or more are compared as one level."""


def by_feature(values: xr.DataArray) -> np.ndarray:
    """(eps_min, seed, feature) array of one quantity."""
    return values.transpose("eps_min", "seed", "feature").values


def within_groups(
    experiment: SeparabilityExperiment, count: xr.DataArray, quality: xr.DataArray, draw: int = 9999
) -> Trend:
    """Among features of one group in runs of one eps_min; ``draw``: permutations."""
    x, y = by_feature(count), by_feature(quality)
    return stratified_trend(x, y, experiment.groups(), MOST, draw)


def verdicts(experiment: SeparabilityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    biased, shown = float(max(experiment.bias_scale)), experiment.figure_read
    changes = [("", biased, shown, "sign"), ("presence from |f|: ", biased, shown, "presence")]
    if biased and 0 in experiment.bias_scale:
        # (without a bias nearly every sign is read off perfectly, pure neurons or not)
        changes.append(("no bias: ", 0.0, shown, "presence"))
    for read in judged_reads(experiment):
        if read != shown:
            changes.append((f"step {read}: ", biased, read, "sign"))
    found = []
    for before, bias, read, reading in changes:
        at = results.sel(bias_scale=bias, read=read, reading=reading)
        name = _naming(experiment, scale, before, bias, read, reading)
        trend = within_groups(experiment, at["pure"], at["accuracy"])
        note = f"balanced accuracy; same eps_min, same group; {_perfect(at['accuracy'])}"
        identity = name("C16" if before else "C16.1", "accuracy grows with pure neurons")
        found.append(judge_trend(identity, trend, "increasing", note=note))
    return elsewhere([*found, *_others(experiment, results, scale, biased)], scale)


def _naming(
    experiment: SeparabilityExperiment, scale: str, before: str, bias: float, read: int, how: str
) -> Naming:
    where = f"{WORDS[how]}, step {read}, {bias_name(bias)}, {experiment.setting}"
    return Naming(experiment, scale, before, f", {where}")


def _others(
    experiment: SeparabilityExperiment, results: xr.Dataset, scale: str, biased: float
) -> list[Verdict]:
    """A second pure neuron, all features together, and trained against untrained networks."""
    shown = experiment.figure_read
    here = results.sel(bias_scale=biased, reading="sign")
    at = here.sel(read=shown)
    name = _naming(experiment, scale, "", biased, shown, "sign")
    count, quality = at["pure"], at["accuracy"]
    second = within_groups(experiment, count.where(count >= 1), quality)
    x, y = pooled(by_feature(count)), pooled(by_feature(quality))
    more = name("C16", "a second pure neuron: accuracy among features with one or more")
    together = name("C16", "all features together: accuracy grows with pure neurons")
    confounded = "eps_min changes both, so this does not show that one makes the other"
    found = [
        judge_trend(more, second, "increasing"),
        judge_trend(together, stratified_trend(x, y, most=MOST), "increasing", note=confounded),
    ]
    if experiment.reads[0] == 0 < shown:
        gain = here["accuracy"].sel(read=shown) - here["accuracy"].sel(read=0)
        identity = name("", "against the untrained network: accuracy gained")
        note = "the untrained network has no thresholds and keeps something of every feature"
        # one value per seed
        values = gain.mean(["eps_min", "feature"]).values
        found.append(judge_difference(identity, values, "positive", note=note))
    return found


def _perfect(quality: xr.DataArray) -> str:
    values = by_feature(quality)
    known = np.isfinite(values)
    share = float((values[known] == 1).mean()) if known.any() else np.nan
    return f"{share:.0%} of probes are perfect"
