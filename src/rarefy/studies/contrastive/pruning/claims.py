"""Verdicts of ``contrast-pruning``: P1-P5, for each beginning, start and bias."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    judge_bound,
    judge_difference,
    judge_equal,
    judge_fraction,
    judge_upper_exponent,
)
from rarefy.measure.trends import loglog_slope
from rarefy.studies.contrastive.pruned_pairs import (
    permitted,
    pruned_alphas,
    pruned_number,
    rate_ratios,
    seed_means,
    state_read,
    used,
)
from rarefy.studies.contrastive.pruning.experiment import CONTAINS, PruningExperiment
from rarefy.studies.contrastive.pruning.strength import (
    coefficient_verdicts,
    judge_worst,
    pure_verdicts,
)
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every

BEGIN_NAMES = {"random": "from random weights", "theorem": "from the theorem's state"}


def verdicts(experiment: PruningExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for (bias, begin, start), here in every(results, "bias_scale", "begin", "start"):
        if begin == "theorem" and start != results["start"].values[0]:
            continue  # the state is that of T4, where the theorem prunes at once
        where = f"{BEGIN_NAMES[str(begin)]}, start {int(start)}, {bias_name(bias)}"
        name = Naming(experiment, scale, after=f", {where}, {experiment.setting}")
        found += _growth(experiment, here, name)
        for alpha in pruned_alphas(results).tolist():
            found += coefficient_verdicts(experiment, here, alpha, name)
            found += pure_verdicts(experiment, here, alpha, name)
        if begin == "random":  # in the theorem's state it is so by construction
            found += _who_is_pruned(experiment, here, name)
        found += _logits(experiment, here, name)
    return found


# ---------------------------------------------------------------------------------------------- P1


def _growth(experiment: PruningExperiment, here: xr.Dataset, name: Naming) -> list[Verdict]:
    rare, others = rate_ratios(experiment, here)
    read = state_read(experiment, here)
    growth = permitted(experiment, here.sel(read=read))["extra_growth"]
    own = growth.sel(group="minority")
    gap = own - growth.sel(group="majority")
    paired = f"one step with and without, same state, step {read}"
    rare_note, note = "rare features with a pruned neuron; Omega(1) read as 1/4", "O(1) read as 4"
    more = name("P1", "rare features gain more than others")
    found = [
        judge_worst(name("P1", "rare growth over (15)"), rare, OMEGA, "at_least", rare_note),
        judge_worst(name("P1", "other growth over (16)"), others, BIG_O, "at_most", note),
        judge_difference(more, seed_means(gap), "positive", note=f"{paired}; {used(gap)}"),
    ]
    for what, along, bound, values, fixed in (
        ("alpha", "alpha", 1.0, own.isel(eps_min=0), f"eps_min={float(growth['eps_min'][0]):g}"),
        ("eps", "eps_min", 2.0, own.isel(alpha=-1), f"alpha={float(growth['alpha'][-1]):g}"),
    ):
        slope = loglog_slope(growth[along].values, by_seed(values, along))
        identity = name("P1", f"rare growth, exponent in {what}")
        note = f"{paired}; (15) is a lower bound; {fixed}"
        found.append(judge_upper_exponent(identity, slope, bound, 0.25, note=note))
    return found


# ---------------------------------------------------------------------------------------------- P4


def _who_is_pruned(experiment: PruningExperiment, here: xr.Dataset, name: Naming) -> list[Verdict]:
    read = state_read(experiment, here)
    at = permitted(experiment, here.sel(read=read))
    number = pruned_number(experiment, at["alpha"])
    among, share = at["pruned_rare"], at["neurons_rare"]
    rare = share * experiment.neurons
    beyond, smaller = (among - share).where(rare > 0), np.minimum(number, rare)
    overlap = (among * number / smaller).where(smaller > 0)
    lucky = at["lucky"] if "alpha" in at["lucky"].dims else at["lucky"].expand_dims(alpha=at.alpha)
    pruned = at["lucky_pruned"].isel(alpha=-1)
    total = lucky.isel(alpha=-1).where(pruned.notnull()).sum()
    chance = float(number[-1] / experiment.neurons)
    note = "a neuron belongs to its strongest feature"
    return [
        judge_difference(
            name("P4", f"rare neurons over-represented among the pruned, step {read}"),
            seed_means(beyond),
            "positive",
            note=f"{note}; {used(beyond)}",
        ),
        judge_bound(
            name("P4", f"pruned and rare neurons: overlap over the smaller set, step {read}"),
            seed_means(overlap),
            0.5,
            "at_least",
            note=f"{note}; 1: one set contains the other; {used(overlap)}; "
            f"rare neurons are {float(share.mean()):.2g} of all",
        ),
        judge_fraction(
            name("P4", f"the paper's rare lucky neurons pruned more than chance, step {read}"),
            round(float(pruned.sum())),
            round(float(total)),
            chance,
            note=f"M*_j of (27) at the start; {chance:.2g} of all neurons are pruned",
        ),
    ]


# ---------------------------------------------------------------------------------------------- P5


def _logits(experiment: PruningExperiment, here: xr.Dataset, name: Naming) -> list[Verdict]:
    read = state_read(experiment, here)
    at = permitted(experiment, here.sel(read=read))
    change = at["positive"] - at["positive"].sel(network="dense")
    contains, lacks = (change.sel(network="masked", contains=kind) for kind in CONTAINS)
    selective = change.sel(contains="contains") - change.sel(contains="lacks")
    telling = at["telling"]
    fall = telling.sel(score="fall of the logit")
    note = f"masked minus dense, step {read}; mean over alpha and eps_min"
    found = [
        judge_difference(
            name("P5", "change of the positive logit on samples with a rare feature"),
            seed_means(contains),
            "negative",
            note=note,
        ),
        judge_bound(
            name("P5", "change on the other samples over that on these"),
            _ratio(abs(lacks), abs(contains)),
            OMEGA,
            "at_most",
            note=f"{note}; sizes; 'not on the others' read as at most a quarter",
        ),
        judge_difference(
            name("P5", "falls more on rare-feature samples than with random neurons left out"),
            seed_means(selective.sel(network="masked") - selective.sel(network="random")),
            "negative",
            note=f"(with minus without a rare feature) of both masks, step {read}",
        ),
    ]
    for output, what in (("predicted_fall", "(211)"), ("simple_fall", "(213), without negatives")):
        identity = name("P5", f"fall of the logit over its first-order value {what}")
        found.append(judge_equal(identity, _ratio(-contains, at[output]), 1.0, 0.25, note=note))
    for control, what in (
        ("fall, random neurons left out", "with random neurons left out"),
        ("size of the embedding", "the size of the embedding"),
    ):
        found.append(
            judge_difference(
                name("P5", f"the fall tells rare-feature samples better than {what}"),
                seed_means(fall - telling.sel(score=control)),
                "positive",
                note=f"difference of AUROC, step {read}; no labels used; its own AUROC "
                f"{float(fall.mean()):.2f}",
            )
        )
    return found


def _ratio(above: xr.DataArray, below: xr.DataArray) -> np.ndarray:
    """Ratio of means over the grid, one per seed; nothing where the denominator vanishes."""
    top, bottom = seed_means(above), seed_means(below)
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=np.abs(bottom) > 1e-12)
