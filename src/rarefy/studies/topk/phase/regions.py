"""The regions of the phase diagram: measured, published, and predicted by the first update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.regions import Mask, between, fit_boundaries
from rarefy.theory import first_step, topk

if TYPE_CHECKING:
    from rarefy.studies.topk.phase.experiment import PhaseExperiment

SHUT = "revive0"
"""Coordinates may come back, but ReLU'(0) = 0, as automatic differentiation has it: a signal's
coordinate at zero then sees no gradient, and only noise can come back."""
LEARNT = 2.0
"""Test loss under which 002 Fig. 2 counts a cell as generalising."""
OVERLAP = 0.8
"""Shared over joint area from which two regions count as the same; all that is needed of a region
drawn by eye with two round constants."""

Numbers = NDArray[np.float64]


def test_loss(results: xr.Dataset) -> xr.DataArray:
    """At the last read: (reading, seed, sigma, keep)."""
    return results["test_loss"].isel(read=-1).transpose("reading", "seed", "sigma", "keep")


def measured_region(results: xr.Dataset, reading: str, seed: int) -> Mask:
    """Cells that generalise, (sigma, keep)."""
    here = test_loss(results).sel(reading=reading, seed=seed)
    return np.asarray(here.values < LEARNT)


def published_curves(study: PhaseExperiment, sigma: Numbers) -> tuple[Numbers, Numbers]:
    """The two curves of Fig. 2. In another setting than its own they are scaled as Theorem 4.4's
    window is: the lower one by d, the upper one by sqrt(n)/T."""
    relative = sigma / study.mu
    at_d, at_n = _scaling(study)
    return topk.figure_lower(relative) * at_d, topk.figure_upper(relative) * at_n


def published_constants(study: PhaseExperiment) -> tuple[float, float]:
    """What stands before exp(-mu^2/(2 sigma^2)) and before mu^2/sigma^2: 120 and 95, scaled as the
    curves are."""
    at_d, at_n = _scaling(study)
    return float(topk.figure_lower(np.inf)) * at_d, float(topk.figure_upper(1.0)) * at_n


def _scaling(study: PhaseExperiment) -> tuple[float, float]:
    return study.d / 200, float(np.sqrt(study.samples / 200) * 10 / study.classes)


@dataclass(frozen=True)
class FittedCurves:
    """Factors on the two published curves that fit one seed's region best. ``no_lower_side``: the
    region reaches the smallest K at every noise level, and any smaller factor fits as well."""

    lower: float
    upper: float
    overlap: float
    no_lower_side: bool


def fitted_curves(study: PhaseExperiment, results: xr.Dataset, reading: str) -> list[FittedCurves]:
    """One fit a seed. Where there is no lower side the factor is the largest that says so, the one
    that is nearest to the published."""
    sigma, keep = axes_of(results)
    below_all = float(keep.min() / published_curves(study, sigma)[0].max())
    found = []
    for seed in results["seed"].values:
        fit = fit_boundaries(
            measured_region(results, reading, seed),
            sigma,
            keep,
            lambda at: published_curves(study, at)[0],
            lambda at: published_curves(study, at)[1],
        )
        open_ = fit.lower <= below_all
        lower = below_all if open_ else fit.lower
        found.append(FittedCurves(lower, fit.upper, fit.overlap, open_))
    return found


def constants_of(study: PhaseExperiment, fits: list[FittedCurves]) -> tuple[str, str]:
    """Fitted constants of the lower and of the upper curve, a seed after the other."""
    low, high = published_constants(study)
    lower = [
        f"none (under {low * fit.lower:.2g})" if fit.no_lower_side else f"{low * fit.lower:.3g}"
        for fit in fits
    ]
    return ", ".join(lower), ", ".join(f"{high * fit.upper:.3g}" for fit in fits)


def published_region(study: PhaseExperiment, results: xr.Dataset) -> Mask:
    sigma, keep = axes_of(results)
    return between(keep, *published_curves(study, sigma))


def first_update(study: PhaseExperiment, sigma: float) -> first_step.FirstStep:
    """The setting of the first update at one noise level."""
    return first_step.FirstStep(
        classes=study.classes,
        samples=study.samples,
        d=study.d,
        mu=study.mu,
        sigma=float(sigma),
        sigma_0=study.sigma_0,
        lr=study.lr,
        output_scale=study.scale,
        labels=study.labels,
    )


ENOUGH = {
    "half of the filters": "half of the filters keep their signal",
    "one filter": "half of the classes have a filter that keeps its signal and is open on it",
}
"""From which K on the first update's window reckons that a signal can be learnt."""


def predicted_curves(
    study: PhaseExperiment, sigma: Numbers, enough: str = "half of the filters"
) -> tuple[Numbers, Numbers]:
    """The window that follows from the first update's order statistics (S12)."""
    steps = [first_update(study, value) for value in sigma]
    if enough == "one filter":
        low = [first_step.class_lower_keep(step, study.filters) for step in steps]
    else:
        low = [first_step.lower_keep(step) for step in steps]
    high = [first_step.upper_keep(step) for step in steps]
    return np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)


def predicted_region(
    study: PhaseExperiment, results: xr.Dataset, enough: str = "half of the filters"
) -> Mask:
    sigma, keep = axes_of(results)
    return between(keep, *predicted_curves(study, sigma, enough))


def axes_of(results: xr.Dataset) -> tuple[Numbers, Numbers]:
    """Noise levels and kept counts of the grid."""
    return results["sigma"].values.astype(float), results["keep"].values.astype(np.float64)


def kept_shares(study: PhaseExperiment, results: xr.Dataset, sigma: float) -> Numbers:
    """The law's share of filters whose signal is among the K largest, for every K of the grid."""
    counts = results["keep"].values.astype(np.int64)
    return first_step.retained_share(counts, first_update(study, sigma))


def spacing(keep: Numbers) -> Numbers:
    """What share of the axis each kept count stands for, so that uneven grids count fairly."""
    ordered = np.sort(keep)
    edges = np.concatenate([[ordered[0]], (ordered[1:] + ordered[:-1]) / 2, [ordered[-1]]])
    width = np.diff(edges) if len(keep) > 1 else np.ones(1)
    return np.asarray(width[np.argsort(np.argsort(keep))] / width.sum())
