"""Verdicts of ``contrast-alignment``: C6-C8, C10 and C15."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    judge_bound,
    judge_fraction,
    judge_slope,
    judge_trend,
)
from rarefy.measure.trends import spearman_trend
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.studies.contrastive.exponents import exponent_in_eps
from rarefy.studies.contrastive.words import bias_name, rows
from rarefy.theory.contrastive import (
    coefficient_range,
    lucky_count_order,
    set_size_order,
    t4,
)

EXPONENTS = (("weight", "C6", 1.0), ("top_weight", "C6", 1.0), ("energy", "C15", 2.0))
"""Output, claim and predicted exponent in eps_j/eps_max; (13), (13), (89)."""
MEANINGS = {"weight": "mean over M_j, ", "top_weight": "best neuron, ", "energy": ""}
Identity = tuple[str, str, str, str]


def middle_sigma(results: xr.Dataset) -> float:
    """The noise level at which claims without one are judged."""
    values = results["sigma"].values
    return float(values[len(values) // 2])


def convergence_reads(study: AlignmentExperiment) -> list[int]:
    """T4, the end of Theorem 3.1's window (or the last read before it), and the last read."""
    end = t4(study.d, study.lr)
    within = [read for read in study.reads if read <= end]
    return sorted({max(within) if within else study.reads[-1], study.reads[-1]})


def alignment_verdicts(
    study: AlignmentExperiment, results: xr.Dataset, scale: str
) -> list[Verdict]:
    def before(claim: str, what: str) -> Identity:
        return (claim, study.name, scale, f"{what}, {study.setting}")

    found = _before_training(study, results.isel(bias_scale=0), before)
    for scale_of_bias in results["bias_scale"].values:
        here = results.sel(bias_scale=scale_of_bias)
        bias = bias_name(scale_of_bias)

        def identity(claim: str, what: str, bias: str = bias) -> Identity:
            return (claim, study.name, scale, f"{what}, {bias}, {study.setting}")

        for read in sorted({study.figure_read, study.reads[-1]}):
            found += _figures(study, here.sel(read=read), identity)
        for read in convergence_reads(study):
            at = here.sel(sigma=middle_sigma(results), read=read)
            found += _at_convergence(study, at, identity)
    return found


def _figures(
    study: AlignmentExperiment, here: xr.Dataset, identity: Callable[[str, str], Identity]
) -> list[Verdict]:
    found = []
    for sigma in here["sigma"].values:
        at = here.sel(sigma=sigma, group="minority")
        for name, what in (("aligned", "neurons with cosine >= 0.3"), ("best", "best cosine")):
            found.append(
                judge_trend(
                    identity("C10", f"{what}, sigma={sigma:g}, step {int(at['read'])}"),
                    spearman_trend(at["eps_min"].values, rows(at[name])),
                    "increasing",
                    note=f"mean over {study.minority} features",
                )
            )
    return found


def _before_training(
    study: AlignmentExperiment, here: xr.Dataset, identity: Callable[[str, str], Identity]
) -> list[Verdict]:
    size = rows(here["initial_set"].sel(sigma=middle_sigma(here)))
    return _set_size(study, here["eps_min"].values, size, "set (26) at the start", identity)


def _at_convergence(
    study: AlignmentExperiment, at: xr.Dataset, identity: Callable[[str, str], Identity]
) -> list[Verdict]:
    eps, step = at["eps_min"].values, int(at["read"])
    when = f"step {step}"
    note = f"sigma={float(at['sigma']):g}; minority over majority"
    stronger = "a power law is a stronger reading than the range in (13)"
    found = [
        judge_slope(
            identity(claim, f"{MEANINGS[name]}{when}"),
            exponent_in_eps(at[name]),
            predicted=exponent,
            tolerance=exponent / 4,
            note=f"{note}; {stronger}" if claim == "C6" else f"{note}; summed over all neurons",
        )
        for name, claim, exponent in EXPONENTS
    ]
    found.append(_inside_range(study, at, identity("C6", f"weight in the range (13), {when}")))
    pure = rows(at["pure"].sel(group="minority"))
    found.append(
        judge_trend(
            identity("C8", f"pure neurons grow with eps_min, {when}"),
            spearman_trend(eps, pure),
            "increasing",
            note="operational set: cosine at least 0.3, four times the second squared",
        )
    )
    found.append(_count_bound(study, eps, pure, identity("C8", f"count over its bound, {when}")))
    found += _set_size(
        study, eps, rows(at["mixed"]), f"a tenth of the squared norm, {when}", identity
    )
    return found


def _inside_range(study: AlignmentExperiment, at: xr.Dataset, identity: Identity) -> Verdict:
    """Share of runs whose mean minority weight over M_j lies in the range of (13)."""
    eps = at["eps_min"].values
    weight = rows(at["weight"].sel(group="minority"))
    low, high = coefficient_range(eps, study.tau, study.neurons, study.d, eps)  # eps_max = 1
    seen = np.isfinite(weight) & (weight > 0)  # 0: every M_j of the run is empty
    inside = seen & (weight >= low) & (weight <= high)
    note = (
        f"minority, mean over M_j; {int((seen & (weight > high)).sum())} of the rest lie above it"
    )
    return judge_fraction(identity, int(inside.sum()), int(seen.sum()), 0.95, note=note)


def _count_bound(
    study: AlignmentExperiment, eps: np.ndarray, pure: np.ndarray, identity: Identity
) -> Verdict:
    """Theorem 3.1's m d^-(eps_max/eps_min)^2; below one neuron it promises nothing."""
    bound = lucky_count_order(study.neurons, study.d, eps)
    told = np.flatnonzero(bound >= 1)
    if not len(told):
        note = "the bound is below one neuron at every eps_min"
        return judge_bound(identity, np.empty(0), OMEGA, "at_least", note=note)
    margin = pure[:, told] / bound[told]
    tightest = int(margin.mean(axis=0).argmin())
    note = f"operational set, at eps_min={eps[told][tightest]:g}, where the margin is smallest"
    return judge_bound(identity, margin[:, tightest], OMEGA, "at_least", note=note)


def _set_size(
    study: AlignmentExperiment,
    eps: np.ndarray,
    size: np.ndarray,
    what: str,
    identity: Callable[[str, str], Identity],
) -> list[Verdict]:
    over = size / set_size_order(study.d, eps)
    worst = int(over.mean(axis=0).argmax())
    return [
        judge_trend(
            identity("C7", f"N_i falls with eps_min, {what}"),
            spearman_trend(eps, size),
            "decreasing",
        ),
        judge_bound(
            identity("C7", f"N_i over d^(1-r^2), {what}"),
            over[:, worst],
            BIG_O,
            "at_most",
            note=f"at eps_min={eps[worst]:g}, where it is largest; O(1) read as 4",
        ),
    ]
