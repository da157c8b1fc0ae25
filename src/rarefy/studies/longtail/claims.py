"""Verdicts of long-tailed pre-training: methods compared seed by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import mean_band
from rarefy.measure.statistics import judge_difference, judge_trend, spearman_trend
from rarefy.studies.longtail.published import published
from rarefy.studies.longtail.words import judged_by, others, spoken
from rarefy.tools.longtail.readings import LONG_TAIL, readings

if TYPE_CHECKING:
    from rarefy.studies.longtail.pretraining import LongTailPretraining


def pruning_verdicts(study: LongTailPretraining, results: xr.Dataset, scale: str) -> list[Verdict]:
    """P6: pruning raises the accuracy of a linear probe, and lowers Delta_20; P8: the gain grows
    with rho; P4: the units that masks leave out prefer classes of the tail."""
    found: list[Verdict] = []
    if not _has_tail(results):  # a control by itself says nothing of a claim
        return found
    protocol = judged_by(study.protocols)
    told = readings(results, protocol)
    baseline, masked = others(results)
    claims: tuple[tuple[str, str, Literal["positive", "negative"]], ...] = (
        ("overall", "accuracy", "positive"),
        ("few", "accuracy of the few", "positive"),
        ("delta_20", "Delta_20", "negative"),
    )
    for method in masked:
        if method == baseline:
            continue
        for rho in told["rho"].values:
            here = told.sel(images=LONG_TAIL, rho=rho)
            for name, words, direction in claims:
                samples = (here[name].sel(way=method) - here[name].sel(way=baseline)).values
                setting = f"{study.setting}, rho {rho:g}, {spoken(method)}: {words}"
                found.append(
                    judge_difference(
                        ("P6", study.name, scale, setting),
                        samples,
                        direction,
                        note=_note(study, float(rho), name, baseline),
                    )
                )
        if len(told["rho"]) > 1:
            found.append(_growth(study, told, scale, method, baseline))
        found.append(_mechanism(study, results, scale, method))
    return found


def _has_tail(told: xr.Dataset) -> bool:
    return LONG_TAIL in told["images"].values


def _note(study: LongTailPretraining, rho: float, name: str, baseline: str) -> str:
    words = f"points, less {spoken(baseline)}, class order by class order"
    words += " (mirrored pairs of orders counted one by one)"
    row = published(study.data, rho)
    theirs = (study.split, study.head) == ("exponential", "full")  # the set of the table
    if row is None or name == "few" or not theirs:
        return words
    gain = row.gain if name == "overall" else row.pruned_delta - row.plain_delta
    return f"{words}; published {gain:+.2f}"


def _growth(
    study: LongTailPretraining, told: xr.Dataset, scale: str, method: str, baseline: str
) -> Verdict:
    here = told["overall"].sel(images=LONG_TAIL)
    gain = here.sel(way=method, drop=True) - here.sel(way=baseline, drop=True)
    # the imbalances of a seed share weights, views and images
    rho, values = told["rho"].values.astype(float), gain.transpose("seed", "rho").values
    trend = spearman_trend(rho, values, within_rows=True)
    setting = f"{study.setting}, {spoken(method)}"
    return judge_trend(("P8", study.name, scale, setting), trend, "increasing")


def _mechanism(study: LongTailPretraining, results: xr.Dataset, scale: str, method: str) -> Verdict:
    """Over all class orders: is the masked share of units that prefer a class larger for the
    tail? (With rho 1 there is none.)"""
    found = results["mask_slope"].sel(images=LONG_TAIL, way=method)
    found = found.sel(rho=found["rho"] > 1)
    # networks of one seed share an order of classes and first weights: one sample together
    slopes = mean_band(found.transpose("rho", "seed").values).mean
    setting = f"{study.setting}, {spoken(method)}: units of tail classes are masked more"
    return judge_difference(
        ("P4", study.name, scale, setting),
        slopes,
        "positive",
        note="Spearman's correlation of rank and masked share over chance, of each network",
    )
