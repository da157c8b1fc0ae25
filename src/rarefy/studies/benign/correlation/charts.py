"""Pictures of ``benign-correlation``."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.benign.correlation.claims import least_error
from rarefy.studies.benign.correlation.experiment import CorrelationExperiment
from rarefy.studies.benign.maps import AXIS_LABELS, accuracy_map, counted
from rarefy.studies.kit.arrays import by_seed, texts

LAW_TITLES = {
    "gaussian": "Gaussian noise",
    "uniform": "uniform noise, A = U Lambda U^T",
    "uniform-own": "uniform noise, A = U Lambda",
}


def pictures(study: CorrelationExperiment, results: xr.Dataset) -> list[Picture]:
    ordered = results.sortby(["strength", "gamma"])
    maps = [_map(study, ordered, name) for name in texts(results, "schedule")]
    return [*maps, _best(study, ordered)]


def _map(study: CorrelationExperiment, results: xr.Dataset, schedule: str) -> Picture:
    here = results.sel(schedule=schedule)
    gamma = here["gamma"].values.astype(float)
    strength = here["strength"].values.astype(float)
    gram = study.spectrum(torch.tensor(gamma)).gram()[:, 0, 1].numpy()
    edge = (gram / study.size) ** 0.25  # |u| at which the signal ratio is 1
    inside = (edge >= strength[0]) & (edge <= strength[-1])
    curve = Curve("signal ratio 1", edge[inside], gamma[inside], role="theory")
    panels = [
        accuracy_map(
            1 - here["test_error"].sel(law=law),
            "strength",
            "gamma",
            LAW_TITLES[law],
            [curve] if inside.sum() > 1 else [],
        )
        for law in texts(results, "law")
    ]
    loss = here["train_loss"]
    return Picture(
        f"map-{schedule.replace(' ', '-')}",
        f"Accuracy over feature strength and noise correlation, {study.words(schedule)}",
        f"003 Fig. 3, {counted(results)}, {study.test_samples} test samples. Upwards the noise of "
        "each class gets a shape of its own, to the right the feature gets stronger. At the top "
        "left there is hardly any feature: what is right there was learnt from noise. The curve "
        "is where Theorem 1's signal ratio |S||u|^4/|A_k^T A_j|_F^2 is 1; thin lines are levels "
        f"of accuracy. Training loss {float(loss.min()):.2g} to {float(loss.max()):.2g} "
        f"(log K = {np.log(study.classes):.2f}).",
        panels,
    )


def _best(study: CorrelationExperiment, results: xr.Dataset) -> Picture:
    gamma = results["gamma"].values.astype(float)
    fine = np.geomspace(gamma[0], gamma[-1], 200)
    weak = results.isel(strength=0)
    panels = []
    for law in texts(results, "law"):
        accuracy = 1 - weak["test_error"].sel(law=law)
        curves = [
            mean_curve(name, gamma, by_seed(accuracy.sel(schedule=name)), role=name)
            for name in texts(results, "schedule")
        ]
        best, label = 1 - least_error(study, fine, law), AXIS_LABELS["gamma"]
        curves.append(Curve("best by noise alone", fine, best, role="theory", style="dashed"))
        panels.append(Lines(curves, label, "test accuracy", LAW_TITLES[law], x_log=True))
    return Picture(
        "best",
        f"How near to optimal without a feature (|u| = {float(weak['strength']):g})",
        "Dashed: the accuracy of the classifier that knows every A_k and sees the noise patch "
        "alone, no constant fitted (for A = U Lambda U^T with uniform zeta: the best by second "
        f"moments). Lines: what the network reaches, {counted(results)}, with 95 % bands; chance "
        f"is {1 / study.classes:.2f}.",
        panels,
    )
