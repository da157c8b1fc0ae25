"""Verdicts of ``contrast-pruning`` on what pruning leaves behind: P2 (weights) and P3 (purity)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.measure.estimates import Interval, bootstrap_interval
from rarefy.studies.contrastive import pruned_pairs as pairs
from rarefy.studies.contrastive.exponents import exponent_in_eps, slope_in_eps
from rarefy.studies.contrastive.pruned_pairs import judge_paired, judge_worst
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
from rarefy.studies.contrastive.words import spelled_slope
from rarefy.studies.kit.reading import Naming
from rarefy.theory.contrastive_pruning import pure_count_with_pruning_order

FLAT = 1.5
"""Largest over smallest of what should not depend on eps_min, for it to count as flat."""


def coefficient_verdicts(
    experiment: PruningExperiment, here: xr.Dataset, alpha: float, name: Naming
) -> list[Verdict]:
    """Exponent of minority over majority in eps_min: 0 when imbalance is overcome."""
    output, what, power = pairs.judged_quantity(str(here["begin"].values))
    resting = pairs.at_rest(here, alpha)
    last = experiment.reads[-1]
    found = []
    for read in dict.fromkeys((pairs.early_read(experiment, int(here["start"])), last)):
        at = here[output].sel(read=read)
        calm = resting.sel(read=read)
        pruned, without = at.sel(alpha=alpha).where(calm), at.sel(alpha=0.0).where(calm)
        setting, rest = f"{what}, alpha={alpha:g}, step {read}", _restless(calm)
        seeds = f"bootstrap over seeds{rest}"
        if read == last:
            slope = name("P2", f"exponent in eps_min, {setting}")
            beside = f"without pruning {spelled_slope(exponent_in_eps(without))}{rest}"
            flat = name("P2", f"rare over frequent: largest over smallest in eps, {setting}")
            found += [
                st.judge_slope(slope, exponent_in_eps(pruned), 0.0, power / 4, beside),
                st.judge_bound(flat, _unevenness(pruned), FLAT, "at_most", note=seeds),
            ]
        nearer = name("P2", f"exponent nearer 0 than without pruning, {setting}")
        note = f"|exponent| without minus with; {seeds}"
        found.append(st.judge_difference(nearer, _nearer(without, pruned), "positive", note=note))
    if str(here["begin"].values) == "theorem":
        weight = here["weight"].sel(alpha=alpha, read=last, group="minority").values
        seen = weight[np.isfinite(weight)]
        identity = name("P2", f"weight of rare neurons at most tau (18), alpha={alpha:g}")
        small = int((seen <= experiment.tau).sum())
        note = f"step {last}; median {np.median(seen):.3g}" if seen.size else ""
        found.append(st.judge_fraction(identity, small, seen.size, 0.95, note=note))
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
    both = np.stack([sample.sel(group=g).values for g in ("majority", "minority")], axis=1)

    def spread(chosen: np.ndarray) -> float:
        there = np.isfinite(chosen)
        count = there.sum(axis=0)
        total = np.where(there, chosen, 0.0).sum(axis=0)
        if (count == 0).any() or (total <= 0).any():
            return float("nan")
        ratio = total[1] / count[1] / (total[0] / count[0])
        return float(ratio.max() / ratio.min())

    return bootstrap_interval(both, spread)


def pure_verdicts(
    experiment: PruningExperiment, here: xr.Dataset, alpha: float, name: Naming
) -> list[Verdict]:
    read = experiment.reads[-1]
    calm = pairs.at_rest(here, alpha).sel(read=read)
    pure = here["pure"].sel(group="minority", read=read)
    pruned, without = pure.sel(alpha=alpha).where(calm), pure.sel(alpha=0.0).where(calm)
    when, how = f"alpha={alpha:g}, step {read}", f"operational set{_restless(calm)}"
    if str(here["begin"].values) == "theorem":  # all neurons are pure at the beginning
        identity = name("P3", f"pure neurons of a rare feature, with over without, {when}")
        ratio, note = pruned / without.where(without > 0), "all are pure at the beginning"
        return [judge_worst(identity, ratio, 0.95, "at_least", f"{note}; {how}")]
    ratio = pruned / pure_count_with_pruning_order(experiment.neurons, experiment.d)
    enough = name("P3", f"pure neurons of a rare feature over m/d, {when}")
    more = name("P3", f"more pure neurons of rare features than without, {when}")
    gain, note = pruned - without, f"paired; mean over eps_min; {how}"
    return [
        judge_worst(enough, ratio, st.OMEGA, "at_least", f"Omega(1) read as 1/4; {how}"),
        judge_paired(more, gain, "positive", note),
    ]
