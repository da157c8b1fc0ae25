"""Verdicts of long-tailed pre-training: methods compared order by order of the classes, mirrored
pairs of orders counted as the pairs they are."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import mean_band
from rarefy.measure.order_pairs import FEWEST, OverOrders, over_orders
from rarefy.measure.statistics import judge_difference
from rarefy.studies.kit.reading import Naming
from rarefy.studies.longtail.published import published
from rarefy.studies.longtail.words import judged_by, others, spoken
from rarefy.tools.longtail.experiment import LongTailPretraining
from rarefy.tools.longtail.readings import LONG_TAIL, readings
from rarefy.train.simclr.method import Method

KINDS = {"pruned": ("P6.1", "Algorithm 1"), "branches": ("P6.2", "two branches")}
"""The method of 000 as it is written, and as in the code whose setup it follows: two readings."""
PRIMARY = ("longtail-table", "cifar10-rho100-500", "cifar10", 500)
"""Study, scale, set and epochs of the primary readings, at the largest imbalance; epochs are not
given."""
LARGEST = 100.0
GROWTH = {"cifar10-growth-500": "P8.1", "cifar100-growth-500": "P8.2"}
"""Scales of the primary readings of P8, two branches: Algorithm 1 has no gain that could grow."""


def verdicts(experiment: LongTailPretraining, results: xr.Dataset, scale: str) -> list[Verdict]:
    """P6: pruning raises the accuracy of a linear probe; where the set is that of the table, it
    lowers Delta_20; P8: the gain grows with rho; P4: the units that masks leave out
    prefer classes of the tail. Several shares kept by one kind of method count with their mean."""
    baseline, masked = others(results)
    if LONG_TAIL not in results["images"].values or not masked:  # nothing to say of a claim
        return []
    found: list[Verdict] = []
    told = readings(results, judged_by(experiment.protocols)).sel(images=LONG_TAIL)
    named = Naming(experiment, scale, f"{experiment.setting}, ")
    pairs = experiment.pairs(results["seed"].values)
    theirs = (experiment.split, experiment.head) == ("exponential", "full")  # the set of the table
    here = (experiment.name, scale, experiment.data, experiment.epochs)
    primary = theirs and here == PRIMARY
    for kind, (number, words) in KINDS.items():
        methods = [one for one in masked if Method.parse(one).kind == kind]
        methods = [one for one in methods if "+" not in one] or methods  # (what is added is ours)
        if not methods:
            continue
        words = spoken(methods[0]) if len(methods) == 1 else f"{words}, mean over shares kept"
        gains = told.sel(algorithm=methods).mean("algorithm", skipna=False)
        gains = gains - told.sel(algorithm=baseline, drop=True)
        rows = [] if scale in GROWTH else told["rho"].values.tolist()  # (they stand elsewhere)
        for rho in rows:
            row = published(experiment.data, rho) if theirs else None
            claim = number if primary and rho == LARGEST and len(methods) == 1 else "P6"
            asked = {"overall": named(claim, f"rho {rho:g}, {words}: accuracy")}
            if row is not None:
                asked["delta_20"] = named("P6", f"rho {rho:g}, {words}: Delta_20")
            for name, setting in asked.items():
                gain = over_orders(gains[name].sel(rho=rho).values, pairs)
                found.append(
                    judge_difference(
                        setting,
                        gain.interval,
                        "positive" if name == "overall" else "negative",
                        note=_counted(gain, spoken(baseline)),
                        published=row and (row.gain if name == "overall" else row.delta_gain),
                    )
                )
        if len(told["rho"]) > 1:
            claim = GROWTH.get(scale, "P8") if kind == "branches" else "P8"
            data = experiment.data if theirs else ""
            found.append(_growth(named, gains["overall"], claim, words, data))
    if scale not in GROWTH:
        found.append(_mechanism(named, results, masked, pairs))
    return found


def _growth(named: Naming, gains: xr.DataArray, claim: str, words: str, data: str) -> Verdict:
    """The gain at the largest imbalance less that at the smallest, order by order: the imbalances
    of an order share first weights, views and most images."""
    assert isinstance(named.experiment, LongTailPretraining)
    low, high = float(gains["rho"].min()), float(gains["rho"].max())
    growth = (gains.sel(rho=high) - gains.sel(rho=low)).values
    grown = over_orders(growth, named.experiment.pairs(gains["seed"].values))
    rows = [row.gain for rho in (low, high) if (row := published(data, rho))]
    return judge_difference(
        named(claim, f"{words}: gain at rho {high:g} less at rho {low:g}"),
        grown.interval,
        "positive",
        note=_counted(grown, f"the gain at rho {low:g}"),
        published=round(rows[1] - rows[0], 2) if len(rows) == 2 else None,
    )


def _counted(gain: OverOrders, less: str) -> str:
    few = gain.interval.n < FEWEST and len(gain.values) > 1
    singles = f" ({gain.shown()}): too few for an interval" if few else ""
    return f"points, less {less}, order by order; {gain.counted}{singles}"


def _mechanism(named: Naming, results: xr.Dataset, masked: list[str], pairs: list[int]) -> Verdict:
    """Over all class orders: is the masked share of units that prefer a class larger for the
    tail? (With rho 1 there is none.)"""
    found = results["mask_slope"].sel(images=LONG_TAIL, algorithm=masked).mean("algorithm")
    found = found.sel(rho=found["rho"] > 1)
    # networks of one seed share an order of classes and first weights: one sample together
    slopes = mean_band(found.transpose("rho", "seed").values).mean
    return judge_difference(
        named("P4", "units of tail classes are masked more"),
        over_orders(slopes, pairs).interval,
        "positive",
        note="Spearman's correlation of rank and masked share over chance, mean over networks",
    )
