"""The regions of the phase diagram: measured, published, and predicted by the first update."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.regions import Mask, between, fit_boundaries, overlap
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.theory import first_step, topk

LEARNT = 2.0
"""Test loss under which 002 Fig. 2 counts a cell as generalising."""
OVERLAP = 0.8
"""Shared over joint area from which two regions count as the same; all that is needed of a region
drawn by eye with two round constants."""

Numbers = NDArray[np.float64]


def at_end(results: xr.Dataset, name: str, reading: str) -> Numbers:
    """A loss at the last read: (seed, sigma, keep)."""
    return by_seed(results[name].isel(read=-1).sel(reading=reading), "sigma", "keep")


def measured_regions(results: xr.Dataset, reading: str) -> Mask:
    """Cells that generalise, (seed, sigma, keep)."""
    return at_end(results, "test_loss", reading) < LEARNT


def overlaps(results: xr.Dataset, reading: str, region: Mask) -> Numbers:
    """Of the measured region with another, (seed,)."""
    return np.array([overlap(measured, region) for measured in measured_regions(results, reading)])


def published_curves(experiment: PhaseExperiment, sigma: Numbers) -> tuple[Numbers, Numbers]:
    """The two curves of Fig. 2. In another setting than its own they are scaled as Theorem 4.4's
    window is: the lower one by d, the upper one by sqrt(n)/T."""
    relative = sigma / experiment.mu
    at_d, at_n = _scaling(experiment)
    return topk.figure_lower(relative) * at_d, topk.figure_upper(relative) * at_n


def published_constants(experiment: PhaseExperiment) -> tuple[float, float]:
    """What stands before exp(-mu^2/(2 sigma^2)) and before mu^2/sigma^2: 120 and 95, scaled as the
    curves are."""
    at_d, at_n = _scaling(experiment)
    return float(topk.figure_lower(np.inf)) * at_d, float(topk.figure_upper(1.0)) * at_n


def _scaling(experiment: PhaseExperiment) -> tuple[float, float]:
    return experiment.d / 200, float(np.sqrt(experiment.samples / 200) * 10 / experiment.classes)


@dataclass(frozen=True)
class FittedCurves:
    """Factors on the two published curves that fit one seed's region best. ``no_lower_side``: the
    region reaches the smallest K at every noise level, and any smaller factor fits as well."""

    lower: float
    upper: float
    overlap: float
    no_lower_side: bool


def fitted_curves(
    experiment: PhaseExperiment, results: xr.Dataset, reading: str
) -> list[FittedCurves]:
    """One fit per seed. Where there is no lower side the factor is the largest that says so, the
    one that is nearest to the published."""
    sigma, keep = axes_of(results)
    below_all = float(keep.min() / published_curves(experiment, sigma)[0].max())
    found = []
    for region in measured_regions(results, reading):
        fit = fit_boundaries(
            region,
            sigma,
            keep,
            lambda at: published_curves(experiment, at)[0],
            lambda at: published_curves(experiment, at)[1],
        )
        open_ = fit.lower <= below_all
        lower = below_all if open_ else fit.lower
        found.append(FittedCurves(lower, fit.upper, fit.overlap, open_))
    return found


def constants_of(experiment: PhaseExperiment, fits: list[FittedCurves]) -> tuple[str, str]:
    """Fitted constants of the lower and of the upper curve, a seed after the other."""
    low, high = published_constants(experiment)
    lower = [
        f"none (under {low * fit.lower:.2g})" if fit.no_lower_side else f"{low * fit.lower:.3g}"
        for fit in fits
    ]
    return ", ".join(lower), ", ".join(f"{high * fit.upper:.3g}" for fit in fits)


def published_region(experiment: PhaseExperiment, results: xr.Dataset) -> Mask:
    sigma, keep = axes_of(results)
    return between(keep, *published_curves(experiment, sigma))


def first_update(experiment: PhaseExperiment, sigma: float) -> first_step.FirstStep:
    """The setting of the first update at one noise level."""
    return first_step.FirstStep(
        classes=experiment.classes,
        samples=experiment.samples,
        d=experiment.d,
        mu=experiment.mu,
        sigma=float(sigma),
        sigma_0=experiment.sigma_0,
        lr=experiment.lr,
        output_scale=experiment.scale,
        labels=experiment.labels,
    )


ENOUGH = {
    "half of the filters": "half of the filters keep their signal",
    "one filter": "half of the classes have a filter that keeps its signal and is open on it",
}
"""From which K on the first update's window reckons that a signal can be learnt."""


def predicted_curves(
    experiment: PhaseExperiment, sigma: Numbers, enough: str = "half of the filters"
) -> tuple[Numbers, Numbers]:
    """The window that follows from the first update's order statistics (S12)."""
    steps = [first_update(experiment, value) for value in sigma]
    if enough == "one filter":
        low = [first_step.class_lower_keep(step, experiment.filters) for step in steps]
    else:
        low = [first_step.lower_keep(step) for step in steps]
    high = [first_step.upper_keep(step) for step in steps]
    return np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)


def predicted_region(
    experiment: PhaseExperiment, results: xr.Dataset, enough: str = "half of the filters"
) -> Mask:
    sigma, keep = axes_of(results)
    return between(keep, *predicted_curves(experiment, sigma, enough))


def axes_of(results: xr.Dataset) -> tuple[Numbers, Numbers]:
    """Noise levels and kept counts of the grid."""
    return results["sigma"].values.astype(float), results["keep"].values.astype(np.float64)


def kept_shares(experiment: PhaseExperiment, results: xr.Dataset, sigma: float) -> Numbers:
    """The law's share of filters whose signal is among the K largest, for every K of the grid."""
    counts = results["keep"].values.astype(np.int64)
    return first_step.retained_share(counts, first_update(experiment, sigma))


def spacing(keep: Numbers) -> Numbers:
    """What share of the axis each kept count stands for, so that uneven grids count fairly."""
    ordered = np.sort(keep)
    edges = np.concatenate([[ordered[0]], (ordered[1:] + ordered[:-1]) / 2, [ordered[-1]]])
    width = np.diff(edges) if len(keep) > 1 else np.ones(1)
    return np.asarray(width[np.argsort(np.argsort(keep))] / width.sum())
