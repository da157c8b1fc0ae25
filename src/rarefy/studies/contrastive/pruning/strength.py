"""Verdicts of ``contrast-pruning`` on what pruning leaves behind: P2 (weights) and P3 (purity)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import Interval, bootstrap_interval
from rarefy.measure.statistics import (
    OMEGA,
    Identity,
    judge_bound,
    judge_difference,
    judge_fraction,
    judge_slope,
)
from rarefy.studies.contrastive.exponents import exponent_in_eps, slope_in_eps
from rarefy.studies.contrastive.pruned_pairs import at_rest, early_read, judged_quantity, seed_means
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
from rarefy.studies.contrastive.words import spelled_slope
from rarefy.studies.kit.reading import Naming
from rarefy.theory.contrastive_pruning import pure_count_with_pruning_order

FLAT = 1.5
"""Largest over smallest of what should not depend on eps_min, for it to count as flat."""


def judge_worst(
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


def coefficient_verdicts(
    experiment: PruningExperiment, here: xr.Dataset, alpha: float, name: Naming
) -> list[Verdict]:
    """Exponent of minority over majority in eps_min: 0 when imbalance is overcome."""
    output, what, power = judged_quantity(str(here["begin"].values))
    resting = at_rest(here, alpha)
    last = experiment.reads[-1]
    found = []
    for read in dict.fromkeys((early_read(experiment, int(here["start"])), last)):
        at = here[output].sel(read=read)
        calm = resting.sel(read=read)
        pruned, without = at.sel(alpha=alpha).where(calm), at.sel(alpha=0.0).where(calm)
        setting = f"{what}, alpha={alpha:g}, step {read}"
        rest = _restless(calm)
        if read == last:
            found.append(
                judge_slope(
                    name("P2", f"exponent in eps_min, {setting}"),
                    exponent_in_eps(pruned),
                    predicted=0.0,
                    tolerance=power / 4,
                    note=f"without pruning {spelled_slope(exponent_in_eps(without))}{rest}",
                )
            )
            found.append(
                judge_bound(
                    name("P2", f"rare over frequent: largest over smallest in eps, {setting}"),
                    _unevenness(pruned),
                    FLAT,
                    "at_most",
                    note=f"bootstrap over seeds{rest}",
                )
            )
        found.append(
            judge_difference(
                name("P2", f"exponent nearer 0 than without pruning, {setting}"),
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
                name("P2", f"weight of rare neurons at most tau (18), alpha={alpha:g}"),
                int((seen <= experiment.tau).sum()),
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


def pure_verdicts(
    experiment: PruningExperiment, here: xr.Dataset, alpha: float, name: Naming
) -> list[Verdict]:
    read = experiment.reads[-1]
    calm = at_rest(here, alpha).sel(read=read)
    pure = here["pure"].sel(group="minority", read=read)
    pruned, without = pure.sel(alpha=alpha).where(calm), pure.sel(alpha=0.0).where(calm)
    when = f"alpha={alpha:g}, step {read}"
    rest = _restless(calm)
    if str(here["begin"].values) == "theorem":  # all neurons are pure at the beginning
        return [
            judge_worst(
                name("P3", f"pure neurons of a rare feature, with over without, {when}"),
                pruned / without.where(without > 0),
                0.95,
                "at_least",
                f"all are pure at the beginning; operational set{rest}",
            )
        ]
    order = pure_count_with_pruning_order(experiment.neurons, experiment.d)
    return [
        judge_worst(
            name("P3", f"pure neurons of a rare feature over m/d, {when}"),
            pruned / order,
            OMEGA,
            "at_least",
            f"Omega(1) read as 1/4; operational set{rest}",
        ),
        judge_difference(
            name("P3", f"more pure neurons of rare features than without, {when}"),
            seed_means(pruned - without),
            "positive",
            note=f"paired; mean over eps_min; operational set{rest}",
        ),
    ]
