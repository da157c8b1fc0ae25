"""Verdicts of long-tailed pre-training: methods compared seed by seed."""

from __future__ import annotations

from typing import Literal

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import mean_band
from rarefy.measure.statistics import judge_difference, judge_trend, spearman_trend
from rarefy.studies.kit.reading import Naming
from rarefy.studies.longtail.published import published
from rarefy.studies.longtail.words import judged_by, others, spoken
from rarefy.tools.longtail.experiment import LongTailPretraining
from rarefy.tools.longtail.readings import LONG_TAIL, readings

CLAIMS: dict[str, tuple[str, Literal["positive", "negative"]]] = {
    "overall": ("accuracy", "positive"),
    "few": ("accuracy of the few", "positive"),
    "delta_20": ("Delta_20", "negative"),
}


def verdicts(
    experiment: LongTailPretraining, results: xr.Dataset, scale: str, growth: bool = True
) -> list[Verdict]:
    """P6: pruning raises the accuracy of a linear probe, and lowers Delta_20; P8 (``growth``): the
    gain grows with rho; P4: the units that masks leave out prefer classes of the tail."""
    if LONG_TAIL not in results["images"].values:  # a control by itself says nothing of a claim
        return []
    found: list[Verdict] = []
    told = readings(results, judged_by(experiment.protocols)).sel(images=LONG_TAIL)
    baseline, masked = others(results)
    named = Naming(experiment, scale, f"{experiment.setting}, ")
    for method in masked:
        if method == baseline:
            continue
        gains = told.sel(algorithm=method, drop=True) - told.sel(algorithm=baseline, drop=True)
        for rho in told["rho"].values:
            for name, (words, direction) in CLAIMS.items():
                found.append(
                    judge_difference(
                        named("P6", f"rho {rho:g}, {spoken(method)}: {words}"),
                        gains[name].sel(rho=rho).values,
                        direction,
                        note=_note(experiment, float(rho), name, baseline),
                    )
                )
        if growth and len(told["rho"]) > 1:
            # the imbalances of a seed share weights, views and images
            values = gains["overall"].transpose("seed", "rho").values
            trend = spearman_trend(told["rho"].values.astype(float), values, within_rows=True)
            found.append(judge_trend(named("P8", spoken(method)), trend, "increasing"))
        found.append(_mechanism(named, results, method))
    return found


def _note(experiment: LongTailPretraining, rho: float, name: str, baseline: str) -> str:
    words = f"points, less {spoken(baseline)}, class order by class order"
    words += " (mirrored pairs of orders counted one by one)"
    row = published(experiment.data, rho)
    theirs = (experiment.split, experiment.head) == ("exponential", "full")  # the set of the table
    if row is None or name == "few" or not theirs:
        return words
    gain = row.gain if name == "overall" else row.pruned_delta - row.plain_delta
    return f"{words}; published {gain:+.2f}"


def _mechanism(named: Naming, results: xr.Dataset, method: str) -> Verdict:
    """Over all class orders: is the masked share of units that prefer a class larger for the
    tail? (With rho 1 there is none.)"""
    found = results["mask_slope"].sel(images=LONG_TAIL, algorithm=method)
    found = found.sel(rho=found["rho"] > 1)
    # networks of one seed share an order of classes and first weights: one sample together
    slopes = mean_band(found.transpose("rho", "seed").values).mean
    return judge_difference(
        named("P4", f"{spoken(method)}: units of tail classes are masked more"),
        slopes,
        "positive",
        note="Spearman's correlation of rank and masked share over chance, of each network",
    )
