"""Predictions and verdicts of ``contrast-pruning-rates``: P1."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, OMEGA, judge_bound, judge_upper_exponent
from rarefy.measure.trends import Slope, loglog_slope
from rarefy.studies.contrastive.pruning_rates.experiment import PruningRatesExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order


def predicted_rates(experiment: PruningRatesExperiment, results: xr.Dataset) -> xr.Dataset:
    """(15) and (16) on the grid of the results."""
    dims = ("features", "pruned", "eps_min")
    d, count, eps = np.meshgrid(*(results[dim].values for dim in dims), indexing="ij")
    alpha = count / (experiment.copies * d)
    constant = np.array([experiment.sized(v).growth_constant for v in results["features"].values])
    lr, constant = experiment.sized(experiment.features[0]).lr, constant[:, None, None]
    least = minority_rate_order(eps, alpha, lr, 1.0) * constant
    most = other_rate_order(eps, alpha, lr, 1.0, 1) * constant / d
    coordinates = {dim: results[dim].values for dim in dims}
    return xr.Dataset({"rare": (dims, least), "others": (dims, most)}, coords=coordinates)


def verdicts(experiment: PruningRatesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    over = results[["rare", "others"]] / predicted_rates(experiment, results)
    all_of_it = f"all {experiment.pruned[-1]} neurons of the rare feature pruned"
    rarest, commonest = experiment.eps_min[0], experiment.eps_min[-1]
    for (bias,), here in every(results, "bias_scale"):
        name = Naming(experiment, scale, after=f", {bias_name(bias)}, {experiment.setting}")
        rare, others = (over[which].sel(bias_scale=bias) for which in ("rare", "others"))
        least = rare.isel(rare.mean("seed").fillna(np.inf).argmin(...))
        most = others.isel(others.mean("seed").fillna(-np.inf).argmax(...))
        slow = name("P1", "rare growth over (15), worst of the grid")
        fast = name("P1", "other growth over (16), worst of the grid")
        low, high = f"{_where(least)}; Omega(1) read as 1/4", f"{_where(most)}; O(1) read as 4"
        found += [
            judge_bound(slow, least.values, OMEGA, "at_least", note=low),
            judge_bound(fast, most.values, BIG_O, "at_most", note=high),
        ]
        middle = here.isel(eps_min=len(experiment.eps_min) // 2, pruned=-1)
        steeper = _exponent(here["rare"].isel(eps_min=-1, features=0), "pruned").value
        in_d = f"{all_of_it}, eps_min={float(middle['eps_min']):g}; (16) over (15) is eps/d"
        in_alpha = (
            f"(15) is a lower bound; d={experiment.features[0]}, eps_min={rarest:g}; at "
            f"eps_min={commonest:g} it is {steeper:.2f}"
        )
        in_eps = (
            "a lower bound eps^2 allows slower falls only; the state's weights are "
            f"proportional to eps (13); d={experiment.features[0]}"
        )
        quotient, at = middle["others"] / middle["rare"], here["rare"].isel(features=0)
        for what, along, bound, values, note in (
            ("other over rare growth, exponent in d", "features", -1.0, quotient, in_d),
            ("rare growth, exponent in alpha", "pruned", 1.0, at.isel(eps_min=0), in_alpha),
            ("rare growth, exponent in eps", "eps_min", 2.0, at.isel(pruned=-1), in_eps),
        ):
            slope = _exponent(values, along)
            found.append(judge_upper_exponent(name("P1", what), slope, bound, 0.25, note=note))
    return found


def _exponent(values: xr.DataArray, along: str) -> Slope:
    return loglog_slope(values[along].values, by_seed(values, along))


def _where(values: xr.DataArray) -> str:
    return (
        f"at d={int(values['features'])}, {int(values['pruned'])} pruned, "
        f"eps_min={float(values['eps_min']):g}"
    )
