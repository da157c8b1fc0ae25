"""Verdicts of ``contrast-pruning``: P1-P5, for each beginning, start and bias."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.contrastive import pruned_pairs as pairs
from rarefy.studies.contrastive.pruned_pairs import judge_paired, judge_worst
from rarefy.studies.contrastive.pruning.experiment import CONTAINS, PruningExperiment
from rarefy.studies.contrastive.pruning.strength import coefficient_verdicts, pure_verdicts
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
        for alpha in pairs.pruned_alphas(results).tolist():
            found += coefficient_verdicts(experiment, here, alpha, name)
            found += pure_verdicts(experiment, here, alpha, name)
        if begin == "random":  # in the theorem's state it is so by construction
            found += _who_is_pruned(experiment, here, name)
        found += _logits(experiment, here, name)
    return found


def _growth(experiment: PruningExperiment, here: xr.Dataset, name: Naming) -> list[Verdict]:
    rare, others = pairs.rate_ratios(experiment, here)
    read = pairs.state_read(experiment, here)
    growth = pairs.permitted(experiment, here.sel(read=read))["extra_growth"]
    own = growth.sel(group="minority")
    gap = own - growth.sel(group="majority")
    paired = f"one step with and without, same state, step {read}"
    rare_note, note = "rare features with a pruned neuron; Omega(1) read as 1/4", "O(1) read as 4"
    more = name("P1", "rare features gain more than others")
    found = [
        judge_worst(name("P1", "rare growth over (15)"), rare, st.OMEGA, "at_least", rare_note),
        judge_worst(name("P1", "other growth over (16)"), others, st.BIG_O, "at_most", note),
        judge_paired(more, gap, "positive", f"{paired}; {pairs.used(gap)}"),
    ]
    for what, along, bound, values, fixed in (
        ("alpha", "alpha", 1.0, own.isel(eps_min=0), f"eps_min={float(growth['eps_min'][0]):g}"),
        ("eps", "eps_min", 2.0, own.isel(alpha=-1), f"alpha={float(growth['alpha'][-1]):g}"),
    ):
        slope = st.loglog_slope(growth[along].values, by_seed(values, along))
        identity = name("P1", f"rare growth, exponent in {what}")
        note = f"{paired}; (15) is a lower bound; {fixed}"
        found.append(st.judge_upper_exponent(identity, slope, bound, 0.25, note=note))
    return found


def _who_is_pruned(experiment: PruningExperiment, here: xr.Dataset, name: Naming) -> list[Verdict]:
    read = pairs.state_read(experiment, here)
    at = pairs.permitted(experiment, here.sel(read=read))
    number = pairs.pruned_number(experiment, at["alpha"])
    among, share = at["pruned_rare"], at["neurons_rare"]
    rare = share * experiment.neurons
    beyond, smaller = (among - share).where(rare > 0), np.minimum(number, rare)
    overlap = (among * number / smaller).where(smaller > 0)
    lucky = at["lucky"] if "alpha" in at["lucky"].dims else at["lucky"].expand_dims(alpha=at.alpha)
    pruned = at["lucky_pruned"].isel(alpha=-1)
    total = lucky.isel(alpha=-1).where(pruned.notnull()).sum()
    chance = float(number[-1] / experiment.neurons)
    more, most, luckiest = (
        name("P4", f"{what}, step {read}")
        for what in (
            "rare neurons over-represented among the pruned",
            "pruned and rare neurons: overlap over the smaller set",
            "the paper's rare lucky neurons pruned more than chance",
        )
    )
    note = "a neuron belongs to its strongest feature"
    both = (
        f"{note}; 1: one set contains the other; {pairs.used(overlap)}; "
        f"rare neurons are {float(share.mean()):.2g} of all"
    )
    some = f"M*_j of (27) at the start; {chance:.2g} of all neurons are pruned"
    counts = round(float(pruned.sum())), round(float(total))
    return [
        judge_paired(more, beyond, "positive", f"{note}; {pairs.used(beyond)}"),
        st.judge_bound(most, pairs.seed_means(overlap), 0.5, "at_least", note=both),
        st.judge_fraction(luckiest, *counts, chance, note=some),
    ]


def _logits(experiment: PruningExperiment, here: xr.Dataset, name: Naming) -> list[Verdict]:
    read = pairs.state_read(experiment, here)
    at = pairs.permitted(experiment, here.sel(read=read))
    change = at["positive"] - at["positive"].sel(network="dense")
    contains, lacks = (change.sel(network="masked", contains=kind) for kind in CONTAINS)
    selective = change.sel(contains="contains") - change.sel(contains="lacks")
    telling = at["telling"]
    fall = telling.sel(score="fall of the logit")
    note = f"masked minus dense, step {read}; mean over alpha and eps_min"
    falls = name("P5", "change of the positive logit on samples with a rare feature")
    over = name("P5", "change on the other samples over that on these")
    sizes = f"{note}; sizes; 'not on the others' read as at most a quarter"
    more = name("P5", "falls more on rare-feature samples than with random neurons left out")
    beyond = selective.sel(network="masked") - selective.sel(network="random")
    masks = f"(with minus without a rare feature) of both masks, step {read}"
    quotient = _ratio(abs(lacks), abs(contains))
    found = [
        judge_paired(falls, contains, "negative", note),
        st.judge_bound(over, quotient, st.OMEGA, "at_most", note=sizes),
        judge_paired(more, beyond, "negative", masks),
    ]
    for output, what in (("predicted_fall", "(211)"), ("simple_fall", "(213), without negatives")):
        identity = name("P5", f"fall of the logit over its first-order value {what}")
        found.append(st.judge_equal(identity, _ratio(-contains, at[output]), 1.0, 0.25, note=note))
    labels = f"difference of AUROC, step {read}; no labels used"
    own = f"{labels}; its own AUROC {float(fall.mean()):.2f}"
    for control, what in (
        ("fall, random neurons left out", "with random neurons left out"),
        ("size of the embedding", "the size of the embedding"),
    ):
        identity = name("P5", f"the fall tells rare-feature samples better than {what}")
        found.append(judge_paired(identity, fall - telling.sel(score=control), "positive", own))
    return found


def _ratio(above: xr.DataArray, below: xr.DataArray) -> np.ndarray:
    """Ratio of means over the grid, one per seed; nothing where the denominator vanishes."""
    top, bottom = pairs.seed_means(above), pairs.seed_means(below)
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=np.abs(bottom) > 1e-12)
