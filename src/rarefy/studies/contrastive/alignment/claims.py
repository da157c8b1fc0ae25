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
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import (
    Reading,
    at_least,
    at_most,
    exponent,
    falls,
    judge_all,
    rises,
    share,
)
from rarefy.theory.contrastive import coefficient_range, lucky_count_order, set_size_order, t4

EXPONENTS = (
    ("weight", "C6", 1.0, "mean over M_j"),  # (13)
    ("top_weight", "C6", 1.0, "best neuron"),  # (13)
    ("energy", "C15", 2.0, ""),  # (89)
)
"""Output, claim, predicted exponent in eps_j/eps_max, and words."""


def middle_sigma(results: xr.Dataset) -> float:
    """The noise level at which claims without one are judged."""
    values = results["sigma"].values
    return float(values[len(values) // 2])


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
    return judge_all(experiment, results, scale, readings)


def _figures(
    experiment: AlignmentExperiment, sigmas: Sequence[float], when: str, at: Mapping[str, Any]
) -> list[Reading]:
    """Fig. 2-3 at every noise level."""
    return [
        Reading(
            "C10",
            f"{what}, sigma={sigma:g}, {when}",
            name,
            rises("eps_min"),
            at={**at, "sigma": sigma},
            note=f"mean over {experiment.minority} features",
        )
        for sigma in sigmas
        for name, what in (("aligned", "neurons with cosine >= 0.3"), ("best", "best cosine"))
    ]


def _at_convergence(
    experiment: AlignmentExperiment, when: str, at: Mapping[str, Any]
) -> list[Reading]:
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

    return [
        *(
            Reading(
                claim,
                f"{what}, {when}" if what else when,
                _exponent_of(name),
                exponent(power, power / 4),
                at=at,
                note=f"{about}; {stronger if claim == 'C6' else 'summed over all neurons'}",
            )
            for name, claim, power, what in EXPONENTS
        ),
        Reading(
            "C6",
            f"weight in the range (13), {when}",
            in_range,
            share(0.95),
            at=rare,
            note=lambda _, runs: f"minority, mean over M_j; {runs[2]} of the rest lie above it",
        ),
        Reading(
            "C8",
            f"pure neurons grow with eps_min, {when}",
            "pure",
            rises("eps_min"),
            at=rare,
            note="operational set: cosine at least 0.3, four times the second squared",
        ),
        Reading(
            "C8",
            f"count over its bound, {when}",
            over_bound,
            at_least(OMEGA, "eps_min"),
            at=rare,
            note=lambda _, over: (
                "operational set, at eps_min={worst}, where the margin is smallest"
                if over.size
                else "the bound is below one neuron at every eps_min"
            ),
        ),
        *_set_size(experiment, "mixed", f"a tenth of the squared norm, {when}", at),
    ]


def _exponent_of(name: str) -> Callable[[xr.Dataset], Slope]:
    return lambda here: exponent_in_eps(here[name])


def _set_size(
    experiment: AlignmentExperiment, name: str, what: str, at: Mapping[str, Any]
) -> list[Reading]:
    """|N_i| falls with eps_min, and is at most of order d^(1 - r^2) (14)."""

    def over(here: xr.Dataset) -> xr.DataArray:
        order = set_size_order(experiment.d, here["eps_min"].values)
        return here[name] / xr.DataArray(order, dims="eps_min")

    return [
        Reading("C7", f"N_i falls with eps_min, {what}", name, falls("eps_min"), at=at),
        Reading(
            "C7",
            f"N_i over d^(1-r^2), {what}",
            over,
            at_most(BIG_O, "eps_min"),
            at=at,
            note="at eps_min={worst}, where it is largest; O(1) read as 4",
        ),
    ]
