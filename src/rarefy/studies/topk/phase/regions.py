"""The regions of the phase diagram: measured and published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.regions import Mask, between, fit_boundaries
from rarefy.studies.kit.arrays import by_seed, known
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.theory import first_step, topk

LEARNT = 2.0
"""Test loss under which 002 Fig. 2 counts a cell as generalising."""
FITTED = 0.01
"""Training loss that 002 reports to be reached everywhere."""

Numbers = NDArray[np.float64]


def at_end(results: xr.Dataset, name: str, reading: str) -> Numbers:
    """A loss at the end: (seed, sigma, keep)."""
    return by_seed(results[name].sel(reading=reading), "sigma", "keep")


def measured_regions(results: xr.Dataset, reading: str) -> Numbers:
    """Cells that generalise, (seed, sigma, keep): 0 and 1, NaN for lost runs."""
    loss = at_end(results, "test_loss", reading)
    return known(loss < LEARNT, loss)


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
    """One fit per seed that has a run. Where there is no lower side the factor is the largest that
    says so, the one that is nearest to the published."""
    sigma, keep = axes_of(results)
    below_all = float(keep.min() / published_curves(experiment, sigma)[0].max())
    found = []
    for region in measured_regions(results, reading):
        if np.isnan(region).all():
            continue
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
    """Fitted constants of the lower and of the upper curve: median and range over seeds."""
    low, high = published_constants(experiment)
    none = sum(fit.no_lower_side for fit in fits)
    lower = _range([low * fit.lower for fit in fits if not fit.no_lower_side])
    if none:
        lower = f"none in {none} of {len(fits)} seeds" + (f", else {lower}" if lower else "")
    return lower, _range([high * fit.upper for fit in fits])


def _range(values: list[float]) -> str:
    values = [value for value in values if np.isfinite(value)]
    if not values:
        return ""
    return f"{np.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


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


def axes_of(results: xr.Dataset) -> tuple[Numbers, Numbers]:
    """Noise levels and kept counts of the grid."""
    return results["sigma"].values.astype(float), results["keep"].values.astype(np.float64)


def spacing(keep: Numbers) -> Numbers:
    """What share of the axis each kept count stands for, so that uneven grids count fairly."""
    ordered = np.sort(keep)
    edges = np.concatenate([[ordered[0]], (ordered[1:] + ordered[:-1]) / 2, [ordered[-1]]])
    width = np.diff(edges) if len(keep) > 1 else np.ones(1)
    return np.asarray(width[np.argsort(np.argsort(keep))] / width.sum())
