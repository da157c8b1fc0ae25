"""Made-up results of the sparse-training studies: known gains, no training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

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
    axes = {axis: list(getattr(study, axis)) for axis in study.axes}
    own = study.coordinates()
    sizes = {**{axis: len(values) for axis, values in axes.items()}, "seed": study.seeds}
    found: dict[str, Any] = {}
    for name, dims in {output.name: output.dims for output in study.outputs()}.items():
        shape = (*sizes.values(), *(len(own[dim]) for dim in dims))
        values = xr.DataArray(np.full(shape, 0.5), dims=(*sizes, *dims))
        values = values.assign_coords({**axes, **{dim: own[dim] for dim in dims}})
        values = values.assign_coords(seed=np.arange(study.seeds))
        if name == "half_accuracy":
            shared = generator.normal(0, 1, study.seeds)  # cancels in pairs
            values += 0.3 + 0.01 * xr.DataArray(shared, dims="seed")
            # so that the mean of both has the spread that was asked for
            values += 0.01 * np.sqrt(2) * spread * generator.normal(0, 1, shape)
            gains = [
                [[gain(n, t, k) if k < 1 else 0.0 for k in axes["keep"]] for t in own["test_noise"]]
                for n in axes["noise"]
            ]
            values += 0.01 * xr.DataArray(gains, dims=("noise", "test_noise", "keep"))
            lucky = [[luck(half, keep) for keep in axes["keep"]] for half in (0, 1)]
            values += 0.01 * xr.DataArray(lucky, dims=("half", "keep"))
        elif name == "epoch_accuracy":
            values[:] = 0.01 * xr.DataArray([train(keep) for keep in axes["keep"]], dims="keep")
            values += 0.0001 * spread * generator.normal(0, 1, shape)
        found[name] = values
    found["test_accuracy"] = found["half_accuracy"].mean("half")
    without = int(np.abs(own["test_noise"]).argmin())
    more = [[adapted(noise, keep) for keep in axes["keep"]] for noise in axes["noise"]]
    clean = found["half_accuracy"].isel(test_noise=without, drop=True)
    clean = clean + 0.01 * xr.DataArray(more, dims=("noise", "keep"))
    found["clean_accuracy"] = clean.transpose(*found["clean_accuracy"].dims)
    return xr.Dataset(found)


def lost(data: xr.Dataset, **cells: Any) -> xr.Dataset:
    """Without all that these cells gave, as where a training has not been run."""
    found = data.copy(deep=True)
    for values in found.values():
        values.loc[cells] = np.nan
    return found
