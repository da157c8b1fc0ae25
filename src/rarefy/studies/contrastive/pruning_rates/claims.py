"""Predictions and verdicts of ``contrast-pruning-rates``: P1."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    judge_bound,
    judge_upper_exponent,
)
from rarefy.measure.trends import loglog_slope
from rarefy.studies.contrastive.pruned_pairs import growth_constant
from rarefy.studies.contrastive.pruning_rates.experiment import PruningRatesExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order


def predicted_rates(study: PruningRatesExperiment, results: xr.Dataset) -> xr.Dataset:
    """(15) and (16) on the grid of the results."""
    dims = ("features", "pruned", "eps_min")
    d, count, eps = np.meshgrid(*(results[dim].values for dim in dims), indexing="ij")
    alpha = count / (study.copies * d)
    constant = np.array([growth_constant(study.sized(v)) for v in results["features"].values])
    lr, constant = study.sized(study.features[0]).lr, constant[:, None, None]
    least = minority_rate_order(eps, alpha, lr, 1.0) * constant
    most = other_rate_order(eps, alpha, lr, 1.0, 1) * constant / d
    coordinates = {dim: results[dim].values for dim in dims}
    return xr.Dataset({"rare": (dims, least), "others": (dims, most)}, coords=coordinates)


def rates_verdicts(study: PruningRatesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    over = results[["rare", "others"]] / predicted_rates(study, results)
    for bias in results["bias_scale"].values:
        name = bias_name(bias)

        def identity(what: str, name: str = name) -> tuple[str, str, str, str]:
            return ("P1", study.name, scale, f"{what}, {name}, {study.setting}")

        here, ratio = results.sel(bias_scale=bias), over.sel(bias_scale=bias)
        rare, others = ratio["rare"], ratio["others"]
        least = rare.isel(rare.mean("seed").fillna(np.inf).argmin(...))
        most = others.isel(others.mean("seed").fillna(-np.inf).argmax(...))
        middle = here.isel(eps_min=len(study.eps_min) // 2, pruned=-1)
        relative = (middle["others"] / middle["rare"]).transpose("seed", "features").values
        over_alpha = here["rare"].isel(eps_min=0, features=0).transpose("seed", "pruned")
        common = here["rare"].isel(eps_min=-1, features=0).transpose("seed", "pruned")
        steeper = loglog_slope(here["pruned"].values, common.values).value
        over_eps = here["rare"].isel(pruned=-1, features=0).transpose("seed", "eps_min")
        found += [
            judge_bound(
                identity("rare growth over (15), worst of the grid"),
                least.values,
                OMEGA,
                "at_least",
                note=_where(least) + "; Omega(1) read as 1/4",
            ),
            judge_bound(
                identity("other growth over (16), worst of the grid"),
                most.values,
                BIG_O,
                "at_most",
                note=_where(most) + "; O(1) read as 4",
            ),
            judge_upper_exponent(
                identity("other over rare growth, exponent in d"),
                loglog_slope(here["features"].values, relative),
                bound=-1.0,
                tolerance=0.25,
                note=f"all {study.pruned[-1]} neurons of the rare feature pruned, eps_min="
                f"{float(middle['eps_min']):g}; (16) over (15) is eps/d",
            ),
            judge_upper_exponent(
                identity("rare growth, exponent in alpha"),
                loglog_slope(here["pruned"].values, over_alpha.values),
                bound=1.0,
                tolerance=0.25,
                note=f"(15) is a lower bound; d={study.features[0]}, eps_min={study.eps_min[0]:g}; "
                f"at eps_min={study.eps_min[-1]:g} it is {steeper:.2f}",
            ),
            judge_upper_exponent(
                identity("rare growth, exponent in eps"),
                loglog_slope(here["eps_min"].values, over_eps.values),
                bound=2.0,
                tolerance=0.25,
                note="a lower bound eps^2 allows slower falls only; the state's weights are "
                f"proportional to eps (13); d={study.features[0]}",
            ),
        ]
    return found


def _where(values: xr.DataArray) -> str:
    return (
        f"at d={int(values['features'])}, {int(values['pruned'])} pruned, "
        f"eps_min={float(values['eps_min']):g}"
    )
