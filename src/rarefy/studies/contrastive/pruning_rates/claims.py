"""Predictions and verdicts of ``contrast-pruning-rates``: P1, and the order of P5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    judge_bound,
    judge_difference,
    judge_upper_exponent,
)
from rarefy.measure.trends import Slope, loglog_slope
from rarefy.studies.contrastive.pruning_rates.experiment import PruningRatesExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order


def predicted_rates(experiment: PruningRatesExperiment, results: xr.Dataset) -> xr.Dataset:
    """(15) and (16) on the grid of the results."""
    lr = experiment.sized(experiment.features[0]).lr
    d: Any = results["features"]
    eps: Any = results["eps_min"]
    alpha: Any = results["pruned"] / (experiment.copies * d)
    constant = d.copy(data=[experiment.sized(int(v)).growth_constant for v in d.values])
    rare = minority_rate_order(eps, alpha, lr, constant)
    return xr.Dataset({"rare": rare, "others": other_rate_order(eps, alpha, lr, constant, d)})


def verdicts(experiment: PruningRatesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """Decided with the bias, which Theorem 3.2 has, by signs and orders."""
    found = []
    for (bias,), here in every(results, "bias_scale"):
        decides = bias == experiment.bias_scale[-1]
        before = "" if decides else f"{bias_name(bias)}: "
        name = Naming(experiment, scale, before, f", {experiment.setting}")
        numbers = ("P1.1", "P1.2", "P1.3") if decides else ("P1", "P1", "P1")
        found += _orders(experiment, here, numbers, name)
        if decides:
            found += _constants(experiment, here, name)
    return found


def _orders(
    experiment: PruningRatesExperiment, here: xr.Dataset, numbers: Sequence[str], name: Naming
) -> list[Verdict]:
    gap = here["rare"] - here["others"]
    least = gap.isel(gap.mean("seed").fillna(np.inf).argmin(...))
    middle = here.isel(eps_min=len(experiment.eps_min) // 2, pruned=-1)
    quotient, rare = middle["others"] / middle["rare"], here["rare"].isel(features=0, pruned=-1)
    more, in_eps, in_d = (
        name(number, what)
        for number, what in zip(
            numbers,
            (
                "growth a step added: rare minus other features",
                "rare growth added: exponent in eps",
                "other over rare growth added: exponent in d",
            ),
            strict=True,
        )
    )
    all_of_it = f"all {experiment.pruned[-1]} neurons of the rare feature pruned"
    bound = f"{all_of_it}, d={experiment.features[0]}; a lower bound eps^2 allows slower falls only"
    note = f"{all_of_it}, eps_min={float(middle['eps_min']):g}; (16) over (15) is eps/d"
    return [
        judge_difference(
            more, least.values, "positive", note=f"worst of the grid, {_where(least)}"
        ),
        judge_upper_exponent(in_eps, _exponent(rare, "eps_min"), 2.0, 0.25, note=bound),
        judge_upper_exponent(in_d, _exponent(quotient, "features"), -1.0, 0.25, note=note),
    ]


def _constants(experiment: PruningRatesExperiment, here: xr.Dataset, name: Naming) -> list[Verdict]:
    """(15) and (16) with their constants, the order in alpha, and the order of Lemma F.2."""
    over = here[["rare", "others"]] / predicted_rates(experiment, here)
    least = over["rare"].isel(over["rare"].mean("seed").fillna(np.inf).argmin(...))
    most = over["others"].isel(over["others"].mean("seed").fillna(-np.inf).argmax(...))
    slow, fast = name("P1", "rare growth over (15)"), name("P1", "other growth over (16)")
    low, high = f"{_where(least)}; Omega(1) read as 1/4", f"{_where(most)}; O(1) read as 4"
    at = here.isel(features=0)
    alpha = _exponent(at["rare"].isel(eps_min=0), "pruned")
    fall = _exponent(at["fall"].isel(pruned=-1), "eps_min")
    in_alpha = name("P1", "rare growth added: exponent in alpha")
    in_eps = name("P5", "fall of the positive logit: exponent in eps")
    lemma = "(181) is a lower bound of order eps"
    return [
        judge_bound(slow, least.values, OMEGA, "at_least", note=low),
        judge_bound(fast, most.values, BIG_O, "at_most", note=high),
        judge_upper_exponent(in_alpha, alpha, 1.0, 0.25, note="(15) is a lower bound"),
        judge_upper_exponent(in_eps, fall, 1.0, 0.25, note=lemma),
    ]


def _exponent(values: xr.DataArray, along: str) -> Slope:
    return loglog_slope(values[along].values, by_seed(values, along))


def _where(values: xr.DataArray) -> str:
    return (
        f"at d={int(values['features'])}, {int(values['pruned'])} pruned, "
        f"eps_min={float(values['eps_min']):g}"
    )
