"""Made-up results of the sparse-training studies: known gains, no training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from made_up_results import fabricated

from rarefy.tools.sparse_experiment import SparseTraining

Gain = Callable[[float, float, float], float]
"""(noise, test noise, keep) -> points more than dense"""
Luck = Callable[[int, float], float]
"""(half, keep) -> points more on that half of the test images, for every seed alike"""


def nothing(noise: float, test_noise: float, keep: float) -> float:
    return 0.0


def made(
    study: SparseTraining,
    gain: Gain = nothing,
    spread: float = 0.01,
    train: Callable[[float], float] = lambda keep: 90 + 5 * keep,
    luck: Luck = lambda half, keep: 0.0,
    adapted: Callable[[float, float], float] = lambda noise, keep: 0.01,
) -> xr.Dataset:
    """Results as the study would store them; ``spread`` in points, from seed to seed. Test accuracy
    is the mean of its two halves. ``adapted``: (noise, keep) -> points more without noise where
    BatchNorm was measured without it too."""
    generator = np.random.default_rng(7)
    results = fabricated(study, study.seeds, {}, rest=0.5)
    own, keep, noise = study.coordinates(), study.keep, study.noise
    for name, values in results.items():
        if name == "half_accuracy":
            shared = generator.normal(0, 1, study.seeds)  # cancels in pairs
            values += 0.3 + 0.01 * xr.DataArray(shared, dims="seed")
            # so that the mean of both has the spread that was asked for
            values += 0.01 * np.sqrt(2) * spread * generator.normal(0, 1, values.shape)
            gains = [
                [[gain(n, t, k) if k < 1 else 0.0 for k in keep] for t in own["test_noise"]]
                for n in noise
            ]
            values += 0.01 * xr.DataArray(gains, dims=("noise", "test_noise", "keep"))
            lucky = [[luck(half, k) for k in keep] for half in (0, 1)]
            values += 0.01 * xr.DataArray(lucky, dims=("half", "keep"))
        elif name == "epoch_accuracy":
            values[:] = 0.01 * xr.DataArray([train(k) for k in keep], dims="keep")
            values += 0.0001 * spread * generator.normal(0, 1, values.shape)
    results["test_accuracy"] = results["half_accuracy"].mean("half")
    without = int(np.abs(own["test_noise"]).argmin())
    more = [[adapted(n, k) for k in keep] for n in noise]
    clean = results["half_accuracy"].isel(test_noise=without, drop=True)
    clean = clean + 0.01 * xr.DataArray(more, dims=("noise", "keep"))
    results["clean_accuracy"] = clean.transpose(*results["clean_accuracy"].dims)
    return results


def lost(data: xr.Dataset, **cells: Any) -> xr.Dataset:
    """Without all that these cells gave, as where a training has not been run."""
    found = data.copy(deep=True)
    for values in found.values():
        values.loc[cells] = np.nan
    return found
