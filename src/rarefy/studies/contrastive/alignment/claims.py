"""Verdicts of ``contrast-alignment``: C6-C8, C10 and C15."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, OMEGA
from rarefy.measure.trends import Slope
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.studies.contrastive.exponents import exponent_in_eps
from rarefy.studies.contrastive.words import bias_name, middle_sigma
from rarefy.studies.kit import reading as kit
from rarefy.studies.kit.arrays import by_seed
from rarefy.theory.contrastive import coefficient_range, lucky_count_order, set_size_order, t4

EXPONENTS = (
    ("weight", "C6", 1.0, "mean over M_j"),  # (13)
    ("top_weight", "C6", 1.0, "best neuron"),  # (13)
    ("energy", "C15", 2.0, ""),  # (89)
)
"""Output, claim, predicted exponent in eps_j/eps_max, and words."""


def convergence_reads(experiment: AlignmentExperiment) -> list[int]:
    """T4, the end of Theorem 3.1's window (or the last read before it), and the last read."""
    end, last = t4(experiment.d, experiment.lr), experiment.reads[-1]
    return sorted({max((read for read in experiment.reads if read <= end), default=last), last})


def verdicts(experiment: AlignmentExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    sigma, sigmas = middle_sigma(results), results["sigma"].values.tolist()
    first = {"sigma": sigma, "bias_scale": results["bias_scale"].values[0]}
    readings = _set_size(experiment, "initial_set", "set (26) at the start, {setting}", first)
    for bias in results["bias_scale"].values:
        after = f"{bias_name(bias)}, {{setting}}"
        for read in sorted({experiment.figure_read, experiment.reads[-1]}):
            at = {"bias_scale": bias, "read": read, "group": "minority"}
            readings += _figures(experiment, sigmas, f"step {read}, {after}", at)
        for read in convergence_reads(experiment):
            at = {"bias_scale": bias, "sigma": sigma, "read": read}
            readings += _at_convergence(experiment, f"step {read}, {after}", at)
    return kit.judge_all(experiment, results, scale, readings)


def _figures(
    experiment: AlignmentExperiment, sigmas: Sequence[float], when: str, at: Mapping[str, Any]
) -> list[kit.Reading]:
    """Fig. 2-3 at every noise level."""
    note, grows = f"mean over {experiment.minority} features", kit.rises("eps_min")
    return [
        kit.Reading(
            "C10",
            f"{what}, sigma={sigma:g}, {when}",
            name,
            grows,
            at={**at, "sigma": sigma},
            note=note,
        )
        for sigma in sigmas
        for name, what in (("aligned", "neurons with cosine >= 0.3"), ("best", "best cosine"))
    ]


def _at_convergence(
    experiment: AlignmentExperiment, when: str, at: Mapping[str, Any]
) -> list[kit.Reading]:
    rare = {**at, "group": "minority"}
    about = f"sigma={at['sigma']:g}; minority over majority"
    stronger = "a power law is a stronger reading than the range in (13)"

    def in_range(here: xr.Dataset) -> tuple[int, int, int]:
        """Runs whose mean weight over M_j lies in the range of (13), of how many, and above it."""
        eps, weight = here["eps_min"].values, by_seed(here["weight"], "eps_min")
        size = (experiment.tau, experiment.neurons, experiment.d)
        low, high = coefficient_range(eps, *size, eps)  # eps_max = 1
        seen = np.isfinite(weight) & (weight > 0)  # 0: every M_j of the run is empty
        above = seen & (weight > high)
        return int((seen & (weight >= low) & ~above).sum()), int(seen.sum()), int(above.sum())

    def over_bound(here: xr.Dataset) -> xr.DataArray:
        """Pure neurons over Theorem 3.1's m d^-(eps_max/eps_min)^2, where that promises one."""
        least = lucky_count_order(experiment.neurons, experiment.d, here["eps_min"].values)
        over = here["pure"] / xr.DataArray(least, dims="eps_min")
        return over.isel(eps_min=np.flatnonzero(least >= 1))

    def counted(_: xr.Dataset, over: xr.DataArray) -> str:
        worst = "operational set, at eps_min={worst}, where the margin is smallest"
        return worst if over.size else "the bound is below one neuron at every eps_min"

    def above(_: xr.Dataset, runs: tuple[int, int, int]) -> str:
        return f"minority, mean over M_j; {runs[2]} of the rest lie above it"

    found = []
    for name, claim, power, what in EXPONENTS:
        named, law = f"{what}, {when}" if what else when, kit.exponent(power, power / 4)
        note = f"{about}; {stronger if claim == 'C6' else 'summed over all neurons'}"
        found.append(kit.Reading(claim, named, _exponent_of(name), law, at=at, note=note))
    inside, more = f"weight in the range (13), {when}", f"pure neurons grow with eps_min, {when}"
    enough, least = f"count over its bound, {when}", kit.at_least(OMEGA, "eps_min")
    pure = "operational set: cosine at least 0.3, four times the second squared"
    return [
        *found,
        kit.Reading("C6", inside, in_range, kit.share(0.95), at=rare, note=above),
        kit.Reading("C8", more, "pure", kit.rises("eps_min"), at=rare, note=pure),
        kit.Reading("C8", enough, over_bound, least, at=rare, note=counted),
        *_set_size(experiment, "mixed", f"a tenth of the squared norm, {when}", at),
    ]


def _exponent_of(name: str) -> Callable[[xr.Dataset], Slope]:
    return lambda here: exponent_in_eps(here[name])


def _set_size(
    experiment: AlignmentExperiment, name: str, what: str, at: Mapping[str, Any]
) -> list[kit.Reading]:
    """|N_i| falls with eps_min, and is at most of order d^(1 - r^2) (14)."""

    def over(here: xr.Dataset) -> xr.DataArray:
        order = set_size_order(experiment.d, here["eps_min"].values)
        return here[name] / xr.DataArray(order, dims="eps_min")

    few, most = f"N_i over d^(1-r^2), {what}", kit.at_most(BIG_O, "eps_min")
    note = "at eps_min={worst}, where it is largest; O(1) read as 4"
    return [
        kit.Reading("C7", f"N_i falls with eps_min, {what}", name, kit.falls("eps_min"), at=at),
        kit.Reading("C7", few, over, most, at=at, note=note),
    ]
