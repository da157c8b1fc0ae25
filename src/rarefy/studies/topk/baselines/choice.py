"""Which knob each method gets: the one with the lowest loss on the validation samples, chosen anew
for every seed and noise level. The test samples have no say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.topk.baselines.arms import NAMES
from rarefy.studies.topk.baselines.experiment import BaselinesExperiment

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """A method at its chosen knob, (seed, sigma) each; ``candidates``: the values there were."""

    method: str
    knob: Array
    validation: Array
    loss: Array
    error: Array
    candidates: tuple[float, ...]

    @property
    def name(self) -> str:
        return NAMES[self.method]


def choices(experiment: BaselinesExperiment, results: xr.Dataset) -> dict[str, Choice]:
    """Every method that has arms among the results, in the order of ``NAMES``."""
    seen = {
        name: by_seed(results[name], "sigma", "arm", "read")
        for name in ("validation_loss", "test_loss", "test_error")
    }
    listed = experiment.parsed(results)
    found = {}
    for method in NAMES:
        source = "dense" if method == "early" else method
        places = [place for place, arm in enumerate(listed) if arm.method == source]
        if not places:
            continue
        if method == "early":
            table = {name: values[:, :, places[0], :] for name, values in seen.items()}
            knobs = results["read"].values.astype(np.float64)
        else:
            table = {name: values[:, :, places, -1] for name, values in seen.items()}
            knobs = np.array([listed[place].knob for place in places])
        found[method] = _chosen(method, knobs, table)
    return found


def _chosen(method: str, knobs: Array, table: dict[str, Array]) -> Choice:
    validation = table["validation_loss"]
    # a run that went non-finite is never chosen; of equals the first is
    best = np.where(np.isfinite(validation), validation, np.inf).argmin(axis=2)[:, :, None]
    at = {name: np.take_along_axis(values, best, axis=2)[:, :, 0] for name, values in table.items()}
    return Choice(
        method,
        knobs[best[:, :, 0]],
        at["validation_loss"],
        at["test_loss"],
        at["test_error"],
        tuple(knobs.tolist()),
    )
