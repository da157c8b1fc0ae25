"""Pictures of S8: accuracy and loss over the keep ratio (002 Fig. 3 and 4), and along training."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.sparse.readings import AXES, POINTS, readings, without_noise
from rarefy.tools.sparse_experiment import SparseTraining

KEEP = "share of weights kept"
SMALL = 0.2
"""Keeps from here on are drawn once more, as differences."""
SHOWN = 5
"""Keeps drawn where each is a curve of its own."""


def pictures(experiment: SparseTraining, results: xr.Dataset) -> list[Picture]:
    return [_over_keep(experiment, results), _along_training(experiment, results)]


def _over_keep(experiment: SparseTraining, results: xr.Dataset) -> Picture:
    parts = list(readings(results, AXES))

    def panel(name: str, title: str, label: str) -> Lines:
        curves = [_curve(words, *_samples(part, name)) for words, part in parts]
        log = name == "epoch_loss"
        return Lines(curves, KEEP, label, title, x_log=True, y_log=log)

    caption = (
        f"{experiment.network} on {experiment.data} after {experiment.epochs} epochs. "
        "Test accuracy without noise in the test; training accuracy and loss over the last epoch, "
        f"with its noise. Mean and 95 % interval over up to {experiment.seeds} seeds: that of a "
        "difference is taken seed by seed, and narrower than those of two accuracies. 002 says "
        "that training accuracy rises to the right and test accuracy is best in between."
    )
    panels = [
        panel("test_accuracy", "Test accuracy", "per cent right"),
        *_less_dense(parts),
        panel("epoch_accuracy", "Training accuracy", "per cent right"),
        panel("epoch_loss", "Training loss", "cross-entropy (nats)"),
    ]
    return Picture("kept", "Accuracy and loss over the share of weights kept", caption, panels)


def _less_dense(parts: list[tuple[str, xr.Dataset]]) -> list[Lines]:
    """In pairs and without the smallest keeps, whose losses hide gains of tenths of a point."""
    curves = []
    for words, part in parts:
        paired = without_noise(part)
        keeps = np.array(sorted(keep for keep in paired.thinned if keep >= SMALL))
        if len(keeps) == 0:
            return []
        gains = np.stack([paired.difference(keep)[:, 0] for keep in keeps], axis=1)
        curves.append(_curve(words, keeps, gains))
    curves.append(Curve("dense", keeps, np.zeros(len(keeps)), role="baseline", style="dotted"))
    title = f"Test accuracy less dense, keep from {SMALL:g}"
    return [Lines(curves, KEEP, "points", title, x_log=True)]


def _curve(words: str, keeps: NDArray[np.float64], samples: NDArray[np.float64]) -> Curve:
    style = "dashed" if "drawn once" in words else "solid"
    return mean_curve(words or "mean", keeps, samples, words or "mean", style)


def _samples(part: xr.Dataset, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Keeps rising, and one row per seed."""
    if name == "test_accuracy":
        paired = without_noise(part)
        return paired.keeps[::-1], paired.accuracy[:, 0, ::-1]
    keeps = part["keep"].values.astype(np.float64)
    order = np.argsort(keeps)
    unit = POINTS if name.endswith("accuracy") else 1.0
    last = part[name].isel(epoch=-1).transpose("seed", "keep")
    return keeps[order], unit * last.values[:, order]


def _along_training(experiment: SparseTraining, results: xr.Dataset) -> Picture:
    epochs = results["watched_epoch"].values.astype(np.float64)
    panels = []
    for words, part in readings(results, AXES):
        curves = []
        for keep in shown(part["keep"].values.astype(np.float64)):
            samples = part["watched_accuracy"].sel(keep=keep).transpose("seed", "watched_epoch")
            label = f"keep {keep:g}"
            style = "dashed" if np.isclose(keep, 1) else "solid"
            curves.append(mean_curve(label, epochs, POINTS * samples.values, label, style))
        panels.append(Lines(curves, "epochs", "test accuracy, per cent", words))
    caption = (
        "Test accuracy without noise on the way. Mean and 95 % interval over up to "
        f"{experiment.seeds} seeds; dashed: the dense network."
    )
    return Picture("training", "Test accuracy along training", caption, panels)


def shown(keeps: NDArray[np.float64]) -> list[float]:
    """A few keeps, the largest and the smallest among them."""
    ordered = np.sort(keeps)[::-1]
    places = np.linspace(0, len(ordered) - 1, min(SHOWN, len(ordered))).round().astype(int)
    return [float(value) for value in ordered[np.unique(places)]]
