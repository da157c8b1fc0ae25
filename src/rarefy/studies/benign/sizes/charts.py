"""Pictures of ``benign-sizes``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.benign.maps import AXIS_LABELS, accuracy_map, counted
from rarefy.studies.benign.sizes.experiment import SizesExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio


def pictures(study: SizesExperiment, results: xr.Dataset) -> list[Picture]:
    ordered = results.sortby(["size", "gamma"])
    accuracy = 1 - ordered["test_error"]
    maps = [
        accuracy_map(accuracy.sel(schedule=name), "size", "gamma", study.words(name))
        for name in texts(results, "schedule")
    ]
    return [
        Picture(
            "map",
            f"Accuracy over class size and noise correlation, |u| = {study.strength:g}",
            f"003 Fig. 4b, {counted(results)}. Rows that do not change from left to right are what "
            "the paper reports: the size of the training set hardly matters, Gamma does.",
            maps,
        ),
        _cuts(study, ordered, accuracy),
    ]


def _cuts(study: SizesExperiment, results: xr.Dataset, accuracy: xr.DataArray) -> Picture:
    gamma, size = results["gamma"].values, results["size"].values
    chosen = gamma[np.unique(np.linspace(0, len(gamma) - 1, 5).round().astype(int))]
    best = 1 - least_noise_error(special_ratio(chosen, study.d - study.classes), study.classes)
    panels = []
    for schedule in texts(results, "schedule"):
        curves = []
        for place, value in enumerate(chosen):
            role = f"gamma {place}"
            samples = by_seed(accuracy.sel(schedule=schedule, gamma=value))
            curves.append(mean_curve(f"Gamma = {value:g}", size, samples, role))
            level = np.full(len(size), best[place])
            curves.append(Curve(f"Gamma = {value:g}, best", size, level, role=role, style="dashed"))
        words = study.words(schedule)
        panels.append(Lines(curves, AXIS_LABELS["size"], "test accuracy", words, x_log=True))
    return Picture(
        "cuts",
        "Accuracy against the number of samples, by noise correlation ratio",
        f"Lines: {counted(results)} with 95 % bands. Dashed: the best classifier by noise alone, "
        "which knows every A_k. Where a line is flat and below its dashed one, more samples do "
        "not help this training.",
        panels,
    )
