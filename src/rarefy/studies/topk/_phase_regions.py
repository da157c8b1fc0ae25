"""The regions of the phase diagram: measured, published, and predicted by the first update."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.regions import Mask, between
from rarefy.theory import first_step, topk

if TYPE_CHECKING:
    from rarefy.studies.topk.topk_phase import TopKPhase

LEARNT = 2.0
"""Test loss under which 002 Fig. 2 counts a cell as generalising."""

Numbers = NDArray[np.float64]


def test_loss(results: xr.Dataset) -> xr.DataArray:
    """At the last read: (reading, seed, sigma, keep)."""
    return results["test_loss"].isel(read=-1).transpose("reading", "seed", "sigma", "keep")


def measured_region(results: xr.Dataset, reading: str, seed: int) -> Mask:
    """Cells that generalise, (sigma, keep)."""
    here = test_loss(results).sel(reading=reading, seed=seed)
    return np.asarray(here.values < LEARNT)


def published_curves(study: TopKPhase, sigma: Numbers) -> tuple[Numbers, Numbers]:
    """The two curves of Fig. 2. In another setting than its own they are scaled as Theorem 4.4's
    window is: the lower one by d, the upper one by sqrt(n)/T."""
    relative = sigma / study.mu
    lower = topk.figure_lower(relative) * study.d / 200
    upper = topk.figure_upper(relative) * (np.sqrt(study.samples) / study.classes)
    return lower, upper / (np.sqrt(200) / 10)


def published_region(study: TopKPhase, results: xr.Dataset) -> Mask:
    sigma, keep = axes_of(results)
    return between(keep, *published_curves(study, sigma))


def first_update(study: TopKPhase, sigma: float) -> first_step.FirstStep:
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


def predicted_curves(study: TopKPhase, sigma: Numbers) -> tuple[Numbers, Numbers]:
    """The window that follows from the first update's order statistics (S12)."""
    edges = [first_step.window(first_update(study, value)) for value in sigma]
    low, high = np.array(edges, dtype=np.float64).T
    return low, high


def predicted_region(study: TopKPhase, results: xr.Dataset) -> Mask:
    sigma, keep = axes_of(results)
    return between(keep, *predicted_curves(study, sigma))


def axes_of(results: xr.Dataset) -> tuple[Numbers, Numbers]:
    """Noise levels and kept counts of the grid."""
    return results["sigma"].values.astype(float), results["keep"].values.astype(np.float64)


def kept_shares(study: TopKPhase, results: xr.Dataset, sigma: float) -> Numbers:
    """The law's share of filters whose signal is among the K largest, for every K of the grid."""
    counts = results["keep"].values.astype(np.int64)
    return first_step.retained_share(counts, first_update(study, sigma))


def spacing(keep: Numbers) -> Numbers:
    """What share of the axis each kept count stands for, so that uneven grids count fairly."""
    ordered = np.sort(keep)
    edges = np.concatenate([[ordered[0]], (ordered[1:] + ordered[:-1]) / 2, [ordered[-1]]])
    width = np.diff(edges) if len(keep) > 1 else np.ones(1)
    return np.asarray(width[np.argsort(np.argsort(keep))] / width.sum())
