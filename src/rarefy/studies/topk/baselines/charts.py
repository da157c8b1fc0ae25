"""The comparison: every method over noise, and what the validation set chose for it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.measure.estimates import mean_interval
from rarefy.studies.topk.baselines.arms import PRUNED
from rarefy.studies.topk.baselines.choice import Choice, choices
from rarefy.studies.topk.baselines.experiment import BaselinesExperiment
from rarefy.theory import topk

LOOKS = {
    "dense": ("baseline", "dashed"),
    "early": ("ordinary", "dotted"),
    "decay": ("bias", "dashed"),
    "random": ("mixed", "dotted"),
    "fixed": ("minority", "solid"),
    "revive0": ("majority", "solid"),
    "revive": ("lucky", "solid"),
}
"""Role and style of a method, the same in all pictures."""
KNOBS = {"early": "steps", "decay": "lambda"} | dict.fromkeys(PRUNED, "K")


def pictures(experiment: BaselinesExperiment, results: xr.Dataset) -> list[Picture]:
    sigma = results["sigma"].values.astype(np.float64)
    chosen = choices(experiment, results)

    def panel(measure: str, label: str, chance: float) -> Lines:
        curves = [
            mean_curve(choice.name, sigma, getattr(choice, measure), *LOOKS[method])
            for method, choice in chosen.items()
        ]
        level = np.full(len(sigma), chance)
        curves.append(Curve("guessing", sigma, level, role="theory", style="dotted"))
        return Lines(curves, "noise std sigma_p", label, f"Test {measure}")

    picture = Picture(
        "methods",
        "Test loss and error of every method at its validated knob",
        "Each method at the K, weight decay or stopping time with the lowest loss on "
        f"{experiment.validation_samples} validation samples; losses and errors are those of "
        f"{experiment.test_samples} others. Mean and 95 % interval over {experiment.seeds} seeds. "
        "A remedy that only makes outputs smaller brings the loss down to that of guessing and "
        'leaves the error where it was. "TopK, ReLU\'(0)=0" is TopK revive with the slope at 0 of '
        "automatic differentiation, under which a pruned signal coordinate cannot come back.",
        [
            panel("loss", "cross-entropy (nats)", topk.chance_loss(experiment.classes)),
            panel("error", "share not classified right", 1 - 1 / experiment.classes),
        ],
    )
    return [picture]


def tables(experiment: BaselinesExperiment, results: xr.Dataset) -> list[Table]:
    chosen = choices(experiment, results)
    sigma = results["sigma"].values.astype(np.float64)
    return [_chosen(experiment, chosen, sigma)]


def _chosen(experiment: BaselinesExperiment, chosen: dict[str, Choice], sigma: np.ndarray) -> Table:
    rows = []
    for place in np.argsort(sigma):
        for choice in chosen.values():
            measures = (choice.validation, choice.loss, choice.error)
            means = [_mean(values[:, place]) for values in measures]
            rows.append([f"{sigma[place]:g}", choice.name, _knobs(choice, place), *means])
    return Table(
        "chosen",
        "What the validation set chose, and what it gave",
        f"The knob with the lowest validation loss, chosen for each of {experiment.seeds} seeds by "
        "itself: the median, and the range where seeds differ. A star marks a median at an end of "
        "the list, beyond which something better may lie. Means over seeds.",
        ("sigma_p", "method", "chosen knob", "validation loss", "test loss", "test error"),
        rows,
    )


def _knobs(choice: Choice, place: int) -> str:
    if choice.method not in KNOBS:
        return "none"
    values = np.sort(choice.knob[:, place])
    middle = values[len(values) // 2]
    star = "*" if middle in (min(choice.candidates), max(choice.candidates)) else ""
    range_ = f" ({values[0]:g} to {values[-1]:g})" if values[0] < values[-1] else ""
    return f"{KNOBS[choice.method]} {middle:g}{star}{range_}"


def _mean(samples: np.ndarray) -> str:
    found = mean_interval(samples)
    return f"{found.mean:.3g}" if np.isfinite(found.mean) else "undefined"
