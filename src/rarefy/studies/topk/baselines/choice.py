"""Which knob each method gets: the one with the lowest loss on the validation samples, chosen anew
for every seed and noise level. The test samples have no say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarefy.studies.topk.baselines.arms import PRUNED, Arm

if TYPE_CHECKING:
    import xarray as xr

    from rarefy.studies.topk.baselines.experiment import BaselinesExperiment


Array = NDArray[np.float64]

NAMES = {
    "dense": "dense",
    "early": "early stopping",
    "decay": "weight decay",
    "random": "random mask",
    "fixed": "TopK fixed",
    "revive0": "TopK, ReLU'(0)=0",
    "revive": "TopK revive",
}
"""What the methods are called before readers. Early stopping is the dense run, read earlier."""
KNOBS = {"early": "steps", "decay": "lambda"} | dict.fromkeys(PRUNED, "K")


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


def choices(study: BaselinesExperiment, results: xr.Dataset) -> dict[str, Choice]:
    """Every method that has arms among the results, in the order of ``NAMES``."""
    order = ("seed", "sigma", "arm", "read")
    seen = {
        name: results[name].transpose(*order).values.astype(np.float64)
        for name in ("validation_loss", "test_loss", "test_error")
    }
    listed = [Arm.parse(str(word), study.d, study.lr) for word in results["arm"].values]
    reads = results["read"].values.astype(np.float64)
    dense = [place for place, arm in enumerate(listed) if arm.method == "dense"]
    found = {}
    for method in NAMES:
        if method == "early":
            table = {name: values[:, :, dense[0], :] for name, values in seen.items()}
            knobs = reads
        else:
            places = [place for place, arm in enumerate(listed) if arm.method == method]
            table = {name: values[:, :, places, -1] for name, values in seen.items()}
            knobs = np.array([listed[place].knob for place in places])
        if len(knobs):
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
