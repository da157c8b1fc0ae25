"""Verdicts of ``contrast-pruning``: P1-P5, for each beginning, start and bias."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Identity,
    judge_bound,
    judge_difference,
    judge_equal,
    judge_fraction,
    judge_upper_exponent,
)
from rarefy.measure.trends import loglog_slope
from rarefy.studies.contrastive.pruned_pairs import (
    Named,
    by_seed,
    permitted,
    pruned_alphas,
    pruned_number,
    rate_ratios,
    state_read,
    used,
)
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
from rarefy.studies.contrastive.pruning.strength import (
    coefficient_verdicts,
    judge_worst,
    pure_verdicts,
)
from rarefy.studies.contrastive.words import bias_name

BEGIN_NAMES = {"random": "from random weights", "theorem": "from the theorem's state"}


def pruning_verdicts(study: PruningExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for bias in results["bias_scale"].values:
        for begin in results["begin"].values:
            starts = results["start"].values
            if begin == "theorem":  # the state is that of T4, where the theorem prunes at once
                starts = starts[:1]
            for start in starts:
                here = results.sel(bias_scale=bias, begin=begin, start=start)
                where = f"{BEGIN_NAMES[str(begin)]}, start {int(start)}, {bias_name(bias)}"

                def identity(claim: str, what: str, where: str = where) -> Identity:
                    return (claim, study.name, scale, f"{what}, {where}, {study.setting}")

                found += _growth(study, here, identity)
                for alpha in pruned_alphas(results).tolist():
                    found += coefficient_verdicts(study, here, alpha, identity)
                    found += pure_verdicts(study, here, alpha, identity)
                if begin == "random":  # in the theorem's state it is so by construction
                    found += _who_is_pruned(study, here, identity)
                found += _logits(study, here, identity)
    return found


# ---------------------------------------------------------------------------------------------- P1


def _growth(study: PruningExperiment, here: xr.Dataset, identity: Named) -> list[Verdict]:
    rare, others = rate_ratios(study, here)
    read = state_read(study, here)
    growth = permitted(study, here.sel(read=read))["extra_growth"]
    own = growth.sel(group="minority")
    gap = own - growth.sel(group="majority")
    over_alpha = own.isel(eps_min=0).transpose("seed", "alpha").values
    over_eps = own.isel(alpha=-1).transpose("seed", "eps_min").values
    paired = f"one step with and without, same state, step {read}"
    return [
        judge_worst(
            identity("P1", "rare growth over (15)"),
            rare,
            OMEGA,
            "at_least",
            "rare features with a pruned neuron; Omega(1) read as 1/4",
        ),
        judge_worst(
            identity("P1", "other growth over (16)"), others, BIG_O, "at_most", "O(1) read as 4"
        ),
        judge_difference(
            identity("P1", "rare features gain more than others"),
            by_seed(gap),
            "positive",
            note=f"{paired}; {used(gap)}",
        ),
        judge_upper_exponent(
            identity("P1", "rare growth, exponent in alpha"),
            loglog_slope(growth["alpha"].values, over_alpha),
            bound=1.0,
            tolerance=0.25,
            note=f"{paired}; (15) is a lower bound; eps_min={float(growth['eps_min'][0]):g}",
        ),
        judge_upper_exponent(
            identity("P1", "rare growth, exponent in eps"),
            loglog_slope(growth["eps_min"].values, over_eps),
            bound=2.0,
            tolerance=0.25,
            note=f"{paired}; (15) is a lower bound; alpha={float(growth['alpha'][-1]):g}",
        ),
    ]


# ---------------------------------------------------------------------------------------------- P4


def _who_is_pruned(study: PruningExperiment, here: xr.Dataset, identity: Named) -> list[Verdict]:
    read = state_read(study, here)
    at = permitted(study, here.sel(read=read))
    number = pruned_number(study, at["alpha"])
    among, rare = at["pruned_rare"], at["neurons_rare"] * study.neurons
    share = number / study.neurons
    smaller = np.minimum(number, rare)
    overlap = (among * number / smaller).where(smaller > 0)
    lucky = at["lucky"] if "alpha" in at["lucky"].dims else at["lucky"].expand_dims(alpha=at.alpha)
    known = at["lucky_pruned"].isel(alpha=-1).notnull()
    total = lucky.isel(alpha=-1).where(known).sum()
    chance = float(share[-1])
    note = "a neuron belongs to its strongest feature"
    return [
        judge_difference(
            identity("P4", f"rare neurons over-represented among the pruned, step {read}"),
            by_seed((among - at["neurons_rare"]).where(rare > 0)),
            "positive",
            note=f"{note}; {used((among - at['neurons_rare']).where(rare > 0))}",
        ),
        judge_bound(
            identity("P4", f"pruned and rare neurons: overlap over the smaller set, step {read}"),
            by_seed(overlap),
            0.5,
            "at_least",
            note=f"{note}; 1: one set contains the other; {used(overlap)}; "
            f"rare neurons are {float(at['neurons_rare'].mean()):.2g} of all",
        ),
        judge_fraction(
            identity("P4", f"the paper's rare lucky neurons pruned more than chance, step {read}"),
            round(float(at["lucky_pruned"].isel(alpha=-1).sum())),
            round(float(total)),
            chance,
            note=f"M*_j of (27) at the start; {chance:.2g} of all neurons are pruned",
        ),
    ]


# ---------------------------------------------------------------------------------------------- P5


def _logits(study: PruningExperiment, here: xr.Dataset, identity: Named) -> list[Verdict]:
    read = state_read(study, here)
    at = permitted(study, here.sel(read=read))
    change = at["positive"] - at["positive"].sel(network="dense")
    contains = change.sel(network="masked", contains="contains")
    lacks = change.sel(network="masked", contains="lacks")
    selective = change.sel(contains="contains") - change.sel(contains="lacks")
    telling, fall = at["telling"], "fall of the logit"
    note = f"masked minus dense, step {read}; mean over alpha and eps_min"
    found = [
        judge_difference(
            identity("P5", "change of the positive logit on samples with a rare feature"),
            by_seed(contains),
            "negative",
            note=note,
        ),
        judge_bound(
            identity("P5", "change on the other samples over that on these"),
            _ratio(abs(lacks), abs(contains)),
            OMEGA,
            "at_most",
            note=f"{note}; sizes; 'not on the others' read as at most a quarter",
        ),
        judge_difference(
            identity("P5", "falls more on rare-feature samples than with random neurons left out"),
            by_seed(selective.sel(network="masked") - selective.sel(network="random")),
            "negative",
            note=f"(with minus without a rare feature) of both masks, step {read}",
        ),
    ]
    for name, what in (("predicted_fall", "(211)"), ("simple_fall", "(213), without negatives")):
        found.append(
            judge_equal(
                identity("P5", f"fall of the logit over its first-order value {what}"),
                _ratio(-contains, at[name]),
                1.0,
                0.25,
                note=note,
            )
        )
    for control, what in (
        ("fall, random neurons left out", "than with random neurons left out"),
        ("size of the embedding", "than the size of the embedding"),
    ):
        found.append(
            judge_difference(
                identity("P5", f"the fall tells rare-feature samples better {what}"),
                by_seed(telling.sel(score=fall) - telling.sel(score=control)),
                "positive",
                note=f"difference of AUROC, step {read}; no labels used; its own AUROC "
                f"{float(telling.sel(score=fall).mean()):.2f}",
            )
        )
    return found


def _ratio(above: xr.DataArray, below: xr.DataArray) -> np.ndarray:
    """Ratio of means over the grid, one a seed; nothing where the denominator vanishes."""
    top, bottom = by_seed(above), by_seed(below)
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=np.abs(bottom) > 1e-12)
