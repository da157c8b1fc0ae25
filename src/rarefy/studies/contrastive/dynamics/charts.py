"""Pictures of ``contrast-dynamics``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.contrastive.dynamics.claims import measured_rate, predicted_growth
from rarefy.studies.contrastive.dynamics.experiment import DynamicsExperiment
from rarefy.studies.contrastive.setting import GROUPS
from rarefy.studies.kit.slices import curve_along, every
from rarefy.theory.contrastive import t3, t4


def pictures(experiment: DynamicsExperiment, results: xr.Dataset) -> list[Picture]:
    found = [_one_neuron(results), _rates(experiment, results), _loss(experiment, results)]
    whole = results["map"].shape[-2:] == (experiment.neurons, experiment.d)
    return [*found, _heat_map(experiment, results)] if whole else found  # a corner would mislead


def _one_neuron(results: xr.Dataset) -> Picture:
    panels = []
    for (eps,), run in every(results.isel(eps_min=[0, -1], seed=0), "eps_min"):
        curves = [
            Curve(label, run["step"].values, run[name].values, role=role)
            for name, label, role in (
                ("dominant", "dominant feature", "lucky"),
                ("second", "second feature", "ordinary"),
                ("noise", "noise space", "noise"),
            )
        ]
        marks = [(float(run[t]), t.upper()) for t in ("t1", "t2") if run[t] >= 0]
        labels = ("training step", "size of the projection", f"eps_min = {eps:g}")
        panels.append(Lines(curves, *labels, x_log=True, y_log=True, marks=marks))
    return Picture(
        "one-neuron",
        "One neuron through three stages (Fig. 1)",
        "The neuron of the first run that ends up purest. Until T1 all features grow and the noise "
        "part stays; then the rising bias should favour one feature until T2, and it converges.",
        panels,
    )


def _rates(experiment: DynamicsExperiment, results: xr.Dataset) -> Picture:
    growth = predicted_growth(experiment, results).sel(group="minority").values
    predicted = growth - 1 + experiment.lr * experiment.weight_decay
    rate, eps = measured_rate(experiment, results), results["eps_min"].values
    both = [
        mean_curve("measured", eps, rate, "minority", "points"),
        Curve("predicted, not fitted", eps, predicted, role="theory", style="dashed"),
    ]
    labels = ("frequency of the feature, eps_j", "growth rate a step, without decay")
    rates = Lines(both, *labels, "stage-1 growth rate")
    ends = every(results["energy"].isel(eps_min=[0, -1]), "eps_min")
    curves = [
        curve_along(f"{group}, eps_min={value:g}", at.sel(group=group), "step", group, style)
        for ((value,), at), style in zip(ends, ("solid", "dashed"), strict=True)
        for group in GROUPS
    ]
    labels = ("training step", "sum over neurons of squared weight on a feature")
    energy_panel = Lines(curves, *labels, "energy of a feature", y_log=True)
    return Picture(
        "growth",
        "Growth is proportional to frequency (7)",
        f"Left: rate over the first {experiment.stage_1_steps} steps; points with 95 % intervals "
        f"over {results.sizes['seed']} runs, the line from the data model alone. Right: what "
        "becomes of it.",
        [rates, energy_panel],
    )


def _loss(experiment: DynamicsExperiment, results: xr.Dataset) -> Picture:
    curves, step = [], results["step"].values
    for (eps,), at in every(results, "eps_min"):
        role, label = f"eps_min {eps:g}", f"eps_min={eps:g}"
        floor = np.full(len(step), float(at["floor"].mean()))
        curves.append(curve_along(label, at["loss"], "step", role))
        curves.append(Curve(f"floor, {label}", step, floor, role=role, style="dotted"))
    times = [(t3(experiment.d, experiment.lr), "T3"), (t4(experiment.d, experiment.lr), "T4")]
    marks = [(time, label) for time, label in times if time <= experiment.steps]
    return Picture(
        "loss",
        "The loss stays above 0, and above its floor (11)",
        "Dotted: the loss of a perfect encoder. Samples of a batch that contain the same features "
        "with the same signs cannot be told apart, and with few features many contain none at all.",
        [Lines(curves, "training step", "contrastive loss (nats)", marks=marks)],
    )


def _heat_map(experiment: DynamicsExperiment, results: xr.Dataset) -> Picture:
    panels = [
        HeatMap(
            run.values,
            [f"{j}" if j < experiment.majority else f"{j}*" for j in run["feature"].values],
            [f"{i}" for i in run["neuron"].values],
            "feature (* minority)",
            "neuron",
            "squared cosine",
            title=f"eps_min = {eps:g}",
        )
        for (eps,), run in every(results["map"].isel(eps_min=[0, -1], seed=0), "eps_min")
    ]
    return Picture(
        "map",
        "What each neuron has learnt",
        "Squared cosine of the neurons with the features, at the last step: one run, the first "
        "of its setting.",
        panels,
    )
