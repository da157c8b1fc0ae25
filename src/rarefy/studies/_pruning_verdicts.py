"""Verdicts of ``contrast-pruning``: P1-P5, for each beginning, start and bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import Interval, Slope, bootstrap_interval, loglog_slope
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Identity,
    judge_bound,
    judge_difference,
    judge_equal,
    judge_slope,
    judge_upper_exponent,
)
from rarefy.studies._alignment_verdicts import bias_name, exponent_in_eps, slope_in_eps
from rarefy.theory.contrastive import uniform_attention_moment
from rarefy.theory.contrastive_pruning import (
    minority_rate_order,
    other_rate_order,
    pure_count_with_pruning_order,
)

if TYPE_CHECKING:
    from rarefy.studies.contrast_pruning import ContrastPruning

BEGIN_NAMES = {"random": "from random weights", "theorem": "from the theorem's state"}
Named = Callable[[str, str], Identity]


def growth_constant(study: ContrastPruning) -> float:
    """C_z log log d / d: stage-1 growth a step at eps = 1 over the learning rate. When a feature
    shows on all tokens attention does not matter for it, so the closed form is exact."""
    moment = uniform_attention_moment(1.0, study.activation, study.tokens, study.spread)
    factor = study.tau if study.loss_form == "times-tau" else 1.0
    return (1 - 1 / study.batch) * moment * factor / study.tau


def state_read(study: ContrastPruning, here: xr.Dataset) -> int:
    """The read whose state is judged before and after masking: where pruning begins (the first
    read after it when none is there), but never untrained random weights."""
    start = int(here["start"])
    trained = 0 if str(here["begin"].values) == "theorem" else 1
    return min(
        (read for read in study.reads if read >= max(start, trained)), default=max(study.reads)
    )


def early_read(study: ContrastPruning, start: int) -> int:
    """The first read at which pruning has acted."""
    return min((read for read in study.reads if read > start), default=study.reads[-1])


def pruned_alphas(results: xr.Dataset) -> np.ndarray:
    return results["alpha"].values[results["alpha"].values > 0]


def by_seed(values: xr.DataArray) -> np.ndarray:
    """Mean over all but the seed: one number a seed."""
    return values.mean([dim for dim in values.dims if dim != "seed"]).values


def pruning_verdicts(study: ContrastPruning, results: xr.Dataset, scale: str) -> list[Verdict]:
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
                for alpha in dict.fromkeys(pruned_alphas(results)[[0, -1]].tolist()):
                    found += _coefficient(study, here, alpha, identity)
                    found += _pure(study, here, alpha, identity)
                if begin == "random":  # in the theorem's state it is so by construction
                    found += _who_is_pruned(study, here, identity)
                found += _logits(study, here, identity)
    return found


def rate_ratios(study: ContrastPruning, here: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Measured over (15) and over (16), for every pruned alpha and eps_min."""
    at = here.sel(alpha=pruned_alphas(here), read=state_read(study, here))
    growth, constant = at["extra_growth"], growth_constant(study)
    alpha, eps = np.meshgrid(at["alpha"].values, at["eps_min"].values, indexing="ij")
    dims = ("alpha", "eps_min")
    rare = xr.DataArray(minority_rate_order(eps, alpha, study.lr, constant), dims=dims)
    others = xr.DataArray(other_rate_order(eps, alpha, study.lr, constant, study.d), dims=dims)
    return growth.sel(group="minority") / rare, growth.sel(group="majority") / others


def _growth(study: ContrastPruning, here: xr.Dataset, identity: Named) -> list[Verdict]:
    rare, others = rate_ratios(study, here)
    read = state_read(study, here)
    at = here.sel(alpha=pruned_alphas(here), read=read)["extra_growth"]
    gap = at.sel(group="minority") - at.sel(group="majority")
    over_alpha = at.sel(group="minority").isel(eps_min=0).transpose("seed", "alpha").values
    over_eps = at.sel(group="minority").isel(alpha=-1).transpose("seed", "eps_min").values
    paired = f"one step with and without, same state, step {read}"
    return [
        _worst(
            identity("P1", "rare growth over (15)"), rare, OMEGA, "at_least", "Omega(1) read as 1/4"
        ),
        _worst(
            identity("P1", "other growth over (16)"), others, BIG_O, "at_most", "O(1) read as 4"
        ),
        judge_difference(
            identity("P1", "rare features gain more than others"),
            by_seed(gap),
            "positive",
            note=paired,
        ),
        judge_slope(
            identity("P1", "rare growth linear in alpha"),
            loglog_slope(at["alpha"].values, over_alpha),
            predicted=1.0,
            tolerance=0.25,
            note=f"{paired}; at eps_min={float(here['eps_min'][0]):g}",
        ),
        judge_upper_exponent(
            identity("P1", "rare growth no steeper than eps^2"),
            loglog_slope(here["eps_min"].values, over_eps),
            bound=2.0,
            tolerance=0.25,
            note=f"{paired}; (15) is a lower bound; at alpha={float(at['alpha'][-1]):g}",
        ),
    ]


def _worst(
    identity: Identity,
    ratio: xr.DataArray,
    bound: float,
    side: Literal["at_least", "at_most"],
    reading: str,
) -> Verdict:
    """A bound judged at the point of the grid where it is tightest."""
    mean = ratio.mean("seed")
    if not bool(np.isfinite(mean).any()):
        return judge_bound(identity, np.empty(0), bound, side, note="no neuron of that kind")
    place = mean.argmin(...) if side == "at_least" else mean.argmax(...)
    there = ratio.isel(place)
    note = (
        f"at alpha={float(there['alpha']):g}, eps_min={float(there['eps_min']):g}, where it is "
        f"tightest; {reading}"
    )
    return judge_bound(identity, there.values, bound, side, note=note)


def _coefficient(
    study: ContrastPruning, here: xr.Dataset, alpha: float, identity: Named
) -> list[Verdict]:
    """Exponent of minority over majority in eps_min: 0 when imbalance is overcome. In the theorem's
    state each neuron has a feature and its weight is judged; elsewhere the feature's energy."""
    by_weight = str(here["begin"].values) == "theorem"
    name, what, power = (
        ("weight", "weight of own neurons", 1) if by_weight else ("energy", "energy", 2)
    )
    found = []
    last = study.reads[-1]
    for read in dict.fromkeys((early_read(study, int(here["start"])), last)):
        at = here[name].sel(read=read)
        pruned, without = at.sel(alpha=alpha), at.sel(alpha=0.0)
        setting = f"{what}, alpha={alpha:g}, step {read}"
        if read == last:
            reference = exponent_in_eps(without)
            found.append(
                judge_slope(
                    identity("P2", f"exponent in eps_min, {setting}"),
                    exponent_in_eps(pruned),
                    predicted=0.0,
                    tolerance=power / 4,
                    note=f"without pruning {reference.value:.2f} "
                    f"[{reference.low:.2f}, {reference.high:.2f}]",
                )
            )
        found.append(
            judge_difference(
                identity("P2", f"exponent nearer 0 than without pruning, {setting}"),
                _nearer(without, pruned),
                "positive",
                note="|exponent| without minus with; bootstrap over seeds",
            )
        )
    return found


def _nearer(without: xr.DataArray, pruned: xr.DataArray) -> Interval:
    order = ("seed", "group", "eps_min")
    log_eps = np.log(without["eps_min"].values)
    both = np.stack([without.transpose(*order).values, pruned.transpose(*order).values], axis=1)

    def gain(sample: np.ndarray) -> float:
        return abs(slope_in_eps(sample[:, 0], log_eps)) - abs(slope_in_eps(sample[:, 1], log_eps))

    return bootstrap_interval(both, gain)


def _pure(study: ContrastPruning, here: xr.Dataset, alpha: float, identity: Named) -> list[Verdict]:
    last = here.isel(read=-1)["pure"].sel(group="minority")
    begin = str(here["begin"].values)
    pruned, without = last.sel(alpha=alpha), last.sel(alpha=0.0)
    when = f"alpha={alpha:g}, step {int(here['read'][-1])}"
    order = pure_count_with_pruning_order(study.neurons, study.d)
    over = (pruned / order).expand_dims(alpha=[alpha])
    found = [
        _worst(
            identity("P3", f"pure neurons of a rare feature over m/d, {when}"),
            over,
            OMEGA,
            "at_least",
            "Omega(1) read as 1/4; operational set",
        )
    ]
    found.append(
        judge_difference(
            identity("P3", f"more pure neurons of rare features than without, {when}"),
            by_seed(pruned - without),
            "positive",
            note="paired; mean over eps_min; operational set"
            + ("; all are pure at the beginning" if begin == "theorem" else ""),
        )
    )
    return found


def _who_is_pruned(study: ContrastPruning, here: xr.Dataset, identity: Named) -> list[Verdict]:
    read = state_read(study, here)
    rarer = here.sel(alpha=pruned_alphas(here), read=read)
    rarer = rarer.sel(eps_min=rarer["eps_min"].values[rarer["eps_min"].values < 1])
    share, base = rarer["pruned_rare"], rarer["neurons_rare"]
    note = "a neuron belongs to its strongest feature; mean over alpha and eps_min"
    return [
        judge_difference(
            identity("P4", f"rare neurons over-represented among the pruned, step {read}"),
            by_seed(share - base),
            "positive",
            note=note,
        ),
        judge_bound(
            identity("P4", f"share of the pruned that are rare neurons, step {read}"),
            by_seed(share),
            0.5,
            "at_least",
            note=f"{note}; they are {float(base.mean()):.2g} of all neurons",
        ),
        judge_difference(
            identity("P4", f"the paper's rare lucky neurons pruned more than chance, step {read}"),
            by_seed(rarer["lucky_pruned"] - rarer["alpha"]),
            "positive",
            note="M*_j of (27) at the start; runs without such neurons left out",
        ),
    ]


def _logits(study: ContrastPruning, here: xr.Dataset, identity: Named) -> list[Verdict]:
    read = state_read(study, here)
    at = here.sel(alpha=pruned_alphas(here), read=read)
    change = at["positive"].sel(network="masked") - at["positive"].sel(network="dense")
    contains, lacks = change.sel(contains="contains"), change.sel(contains="lacks")
    telling = at["telling"]
    note = f"masked minus dense, step {read}; mean over alpha and eps_min"
    return [
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
        judge_equal(
            identity("P5", "fall of the logit over its first-order value (211)"),
            _ratio(-contains, at["predicted_fall"]),
            1.0,
            0.25,
            note=note,
        ),
        judge_difference(
            identity("P5", "the fall tells samples with a rare feature without labels"),
            by_seed(telling.sel(score="fall of the logit") - 0.5),
            "positive",
            note=f"AUROC minus 1/2, step {read}",
        ),
        judge_difference(
            identity("P5", "the fall tells them better than the size of the embedding"),
            by_seed(
                telling.sel(score="fall of the logit") - telling.sel(score="size of the embedding")
            ),
            "positive",
            note=f"difference of AUROC, step {read}",
        ),
    ]


def _ratio(above: xr.DataArray, below: xr.DataArray) -> np.ndarray:
    """Ratio of means over the grid, one a seed; nothing where the denominator vanishes."""
    top, bottom = by_seed(above), by_seed(below)
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=np.abs(bottom) > 1e-12)


def exponents(results: xr.Dataset, name: str) -> list[Slope]:
    """Exponent in eps_min of minority over majority for every alpha."""
    return [exponent_in_eps(results[name].sel(alpha=alpha)) for alpha in results["alpha"].values]
