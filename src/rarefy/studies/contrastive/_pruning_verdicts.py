"""Verdicts of ``contrast-pruning``: P1-P5, for each beginning, start and bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import Interval, bootstrap_interval, loglog_slope
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Identity,
    judge_bound,
    judge_difference,
    judge_equal,
    judge_fraction,
    judge_slope,
    judge_upper_exponent,
)
from rarefy.studies.contrastive._exponents import exponent_in_eps, slope_in_eps
from rarefy.studies.contrastive._pruning_reading import (
    at_rest,
    by_seed,
    early_read,
    judged_quantity,
    permitted,
    pruned_alphas,
    pruned_number,
    rate_ratios,
    state_read,
    used,
)
from rarefy.studies.contrastive._words import bias_name
from rarefy.theory.contrastive_pruning import pure_count_with_pruning_order

if TYPE_CHECKING:
    from rarefy.studies.contrastive.contrast_pruning import ContrastPruning

BEGIN_NAMES = {"random": "from random weights", "theorem": "from the theorem's state"}
FLAT = 1.5
"""Largest over smallest of what should not depend on eps_min, for it to count as flat."""
Named = Callable[[str, str], Identity]


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
                for alpha in pruned_alphas(results).tolist():
                    found += _coefficient(study, here, alpha, identity)
                    found += _pure(study, here, alpha, identity)
                if begin == "random":  # in the theorem's state it is so by construction
                    found += _who_is_pruned(study, here, identity)
                found += _logits(study, here, identity)
    return found


# ---------------------------------------------------------------------------------------------- P1


def _growth(study: ContrastPruning, here: xr.Dataset, identity: Named) -> list[Verdict]:
    rare, others = rate_ratios(study, here)
    read = state_read(study, here)
    growth = permitted(study, here.sel(read=read))["extra_growth"]
    own = growth.sel(group="minority")
    gap = own - growth.sel(group="majority")
    over_alpha = own.isel(eps_min=0).transpose("seed", "alpha").values
    over_eps = own.isel(alpha=-1).transpose("seed", "eps_min").values
    paired = f"one step with and without, same state, step {read}"
    return [
        _worst(
            identity("P1", "rare growth over (15)"),
            rare,
            OMEGA,
            "at_least",
            "rare features with a pruned neuron; Omega(1) read as 1/4",
        ),
        _worst(
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
    where = ", ".join(f"{dim}={float(there[dim]):g}" for dim in mean.dims)
    note = f"at {where}, where it is tightest; {reading}"
    return judge_bound(identity, there.values, bound, side, note=note)


# ---------------------------------------------------------------------------------------------- P2


def _coefficient(
    study: ContrastPruning, here: xr.Dataset, alpha: float, identity: Named
) -> list[Verdict]:
    """Exponent of minority over majority in eps_min: 0 when imbalance is overcome."""
    name, what, power = judged_quantity(str(here["begin"].values))
    resting = at_rest(here, alpha)
    last = study.reads[-1]
    found = []
    for read in dict.fromkeys((early_read(study, int(here["start"])), last)):
        at = here[name].sel(read=read)
        calm = resting.sel(read=read)
        pruned, without = at.sel(alpha=alpha).where(calm), at.sel(alpha=0.0).where(calm)
        setting = f"{what}, alpha={alpha:g}, step {read}"
        rest = _restless(calm)
        if read == last:
            reference = exponent_in_eps(without)
            found.append(
                judge_slope(
                    identity("P2", f"exponent in eps_min, {setting}"),
                    exponent_in_eps(pruned),
                    predicted=0.0,
                    tolerance=power / 4,
                    note=f"without pruning {reference.value:.2f} "
                    f"[{reference.low:.2f}, {reference.high:.2f}]{rest}",
                )
            )
            found.append(
                judge_bound(
                    identity("P2", f"rare over frequent: largest over smallest in eps, {setting}"),
                    _unevenness(pruned),
                    FLAT,
                    "at_most",
                    note=f"bootstrap over seeds{rest}",
                )
            )
        found.append(
            judge_difference(
                identity("P2", f"exponent nearer 0 than without pruning, {setting}"),
                _nearer(without, pruned),
                "positive",
                note=f"|exponent| without minus with; bootstrap over seeds{rest}",
            )
        )
    if str(here["begin"].values) == "theorem":
        weight = here["weight"].sel(alpha=alpha, read=last, group="minority").values
        seen = weight[np.isfinite(weight)]
        found.append(
            judge_fraction(
                identity("P2", f"weight of rare neurons at most tau (18), alpha={alpha:g}"),
                int((seen <= study.tau).sum()),
                seen.size,
                0.95,
                note=f"step {last}; median {np.median(seen):.3g}" if seen.size else "",
            )
        )
    return found


def _restless(calm: xr.DataArray) -> str:
    """Says how many runs do not come to rest; they are left out."""
    lost = int((~calm).sum())
    return f"; {lost} of {calm.size} runs grow without rest and are left out" if lost else ""


def _both(first: xr.DataArray, second: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    order = ("seed", "group", "eps_min")
    stacked = np.stack([v.transpose(*order).values for v in (first, second)], axis=1)
    return stacked, np.log(first["eps_min"].values)


def _nearer(without: xr.DataArray, pruned: xr.DataArray) -> Interval:
    both, log_eps = _both(without, pruned)

    def gain(sample: np.ndarray) -> float:
        return abs(slope_in_eps(sample[:, 0], log_eps)) - abs(slope_in_eps(sample[:, 1], log_eps))

    return bootstrap_interval(both, gain)


def _unevenness(values: xr.DataArray) -> Interval:
    """Largest over smallest, in eps_min, of minority over majority means."""
    sample = values.transpose("group", "seed", "eps_min")
    pairs = np.stack([sample.sel(group=g).values for g in ("majority", "minority")], axis=1)

    def spread(chosen: np.ndarray) -> float:
        there = np.isfinite(chosen)
        count = there.sum(axis=0)
        total = np.where(there, chosen, 0.0).sum(axis=0)
        if (count == 0).any() or (total <= 0).any():
            return float("nan")
        ratio = total[1] / count[1] / (total[0] / count[0])
        return float(ratio.max() / ratio.min())

    return bootstrap_interval(pairs, spread)


# ---------------------------------------------------------------------------------------------- P3


def _pure(study: ContrastPruning, here: xr.Dataset, alpha: float, identity: Named) -> list[Verdict]:
    read = study.reads[-1]
    calm = at_rest(here, alpha).sel(read=read)
    pure = here["pure"].sel(group="minority", read=read)
    pruned, without = pure.sel(alpha=alpha).where(calm), pure.sel(alpha=0.0).where(calm)
    when = f"alpha={alpha:g}, step {read}"
    rest = _restless(calm)
    if str(here["begin"].values) == "theorem":  # all neurons are pure at the beginning
        return [
            _worst(
                identity("P3", f"pure neurons of a rare feature, with over without, {when}"),
                pruned / without.where(without > 0),
                0.95,
                "at_least",
                f"all are pure at the beginning; operational set{rest}",
            )
        ]
    order = pure_count_with_pruning_order(study.neurons, study.d)
    return [
        _worst(
            identity("P3", f"pure neurons of a rare feature over m/d, {when}"),
            pruned / order,
            OMEGA,
            "at_least",
            f"Omega(1) read as 1/4; operational set{rest}",
        ),
        judge_difference(
            identity("P3", f"more pure neurons of rare features than without, {when}"),
            by_seed(pruned - without),
            "positive",
            note=f"paired; mean over eps_min; operational set{rest}",
        ),
    ]


# ---------------------------------------------------------------------------------------------- P4


def _who_is_pruned(study: ContrastPruning, here: xr.Dataset, identity: Named) -> list[Verdict]:
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


def _logits(study: ContrastPruning, here: xr.Dataset, identity: Named) -> list[Verdict]:
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
