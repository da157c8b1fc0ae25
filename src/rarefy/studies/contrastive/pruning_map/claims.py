"""Verdicts of ``contrast-pruning-map``: P2 and P3 at the best place of the map."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_difference
from rarefy.studies.contrastive.pruning_map.experiment import PruningMapExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.arrays import known
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every

RESTLESS = 10.0
"""A pruned run whose frequent features have this many times the squared weight of its unpruned twin
does not come to rest; fixed before looking at claims."""
CLAIMS = {"balance": "P2", "pure": "P3"}
QUANTITIES = {
    "balance": "log of squared weight, rare over frequent features",
    "pure": "pure neurons of a rare feature",
}


def gains(results: xr.Dataset, quantity: str) -> xr.DataArray:
    """Pruned minus unpruned for every alpha > 0, paired by seed."""
    if quantity == "balance":
        energy = results["energy"]
        ratio = energy.sel(group="minority") / energy.sel(group="majority")
        value = xr.apply_ufunc(np.log, ratio.where(ratio > 0))
    else:
        value = results[quantity].sel(group="minority")
    return value.where(value["alpha"] > 0, drop=True) - value.sel(alpha=0.0).drop_vars("alpha")


def verdicts(experiment: PruningMapExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """Algorithm 1's update, wherever it is best on the map: the place is chosen on one half of the
    seeds, judged on the other; among shares the theorem allows, and places at which the runs of the
    first half come to rest."""
    found = []
    half, other_half = ({"seed": slice(first, None, 2)} for first in (0, 1))
    for (bias, rule), here in every(results, "bias_scale", "update"):
        if rule != "dense":
            continue  # the other two are ours
        after = f", {bias_name(bias)}, {experiment.setting}"
        name = Naming(experiment, scale, "best of the map: ", after)
        energy = here["energy"].sel(group="majority", drop=True)
        twin = energy.sel(alpha=0.0, drop=True)
        calm = known(energy <= RESTLESS * twin, twin)  # a pruned run that is lost finds no rest
        rests = calm.isel(half).mean("seed") >= 0.95
        for quantity, what in QUANTITIES.items():
            gain = gains(here, quantity)
            allowed = gain["alpha"] * experiment.d <= experiment.minority * (1 + 1e-9)
            first = gain.isel(half).mean("seed")
            chosen = first.where(allowed & rests.sel(alpha=gain["alpha"]))
            judged = gain.isel(other_half).isel(chosen.fillna(-np.inf).argmax(...))
            if not bool(chosen.notnull().any()):
                judged = judged * np.nan  # no place may be chosen
            note = (
                f"pruned minus not, at alpha={float(judged['alpha']):g}, start "
                f"{int(judged['start'])}, chosen on the other half of the seeds among alpha "
                "up to the rare features' share where training comes to rest"
            )
            identity = name(CLAIMS[quantity], what)
            found.append(judge_difference(identity, judged.values, "positive", note=note))
    return found
