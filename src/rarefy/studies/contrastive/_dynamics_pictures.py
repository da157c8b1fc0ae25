"""Pictures of ``contrast-dynamics``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.contrastive._dynamics_verdicts import predicted_growth
from rarefy.theory.contrastive import t3, t4

if TYPE_CHECKING:
    from rarefy.studies.contrastive.contrast_dynamics import ContrastDynamics


def dynamics_pictures(study: ContrastDynamics, results: xr.Dataset) -> list[Picture]:
    pictures = [_one_neuron(results), _rates(study, results), _loss(study, results)]
    if results["map"].shape[-2:] == (study.neurons, study.d):  # a corner of a larger map misleads
        pictures.append(_heat_map(study, results))
    return pictures


def _one_neuron(results: xr.Dataset) -> Picture:
    panels = []
    for eps in (results["eps_min"].values[0], results["eps_min"].values[-1]):
        run = results.sel(eps_min=eps).isel(seed=0)
        marks = [(float(run[t]), label) for t, label in (("t1", "T1"), ("t2", "T2")) if run[t] >= 0]
        curves = [
            Curve(label, results["step"].values, run[name].values, role=role)
            for name, label, role in (
                ("dominant", "dominant feature", "lucky"),
                ("second", "second feature", "ordinary"),
                ("noise", "noise space", "noise"),
            )
        ]
        panels.append(
            Lines(
                curves,
                "training step",
                "size of the projection",
                title=f"eps_min = {eps:g}",
                x_log=True,
                y_log=True,
                marks=marks,
            )
        )
    return Picture(
        "one-neuron",
        "One neuron through three stages (Fig. 1)",
        "The neuron of the first run that ends up purest. Until T1 all features grow and the noise "
        "part stays; then the rising bias should favour one feature until T2, and it converges.",
        panels,
    )


def _rates(study: ContrastDynamics, results: xr.Dataset) -> Picture:
    steps = study.stage_1_steps
    growth = predicted_growth(study, results)
    back = study.lr * study.weight_decay
    predicted = (growth - 1 + back).sel(group="minority").values
    factor = results["stage_1_factor"].sel(group="minority").transpose("seed", "eps_min").values
    rate = factor ** (1 / steps) - 1 + back
    eps = results["eps_min"].values
    rates = Lines(
        [
            mean_curve("measured", eps, rate, "minority", "points"),
            Curve("predicted, not fitted", eps, predicted, role="theory", style="dashed"),
        ],
        "frequency of the feature, eps_j",
        "growth rate a step, without decay",
        title="stage-1 growth rate",
    )
    curves = []
    for value, style in ((eps[0], "solid"), (eps[-1], "dashed")):
        for group in ("majority", "minority"):
            energy = results["energy"].sel(eps_min=value, group=group).transpose("seed", "step")
            label = f"{group}, eps_min={value:g}"
            curves.append(mean_curve(label, results["step"].values, energy.values, group, style))
    energy_panel = Lines(
        curves,
        "training step",
        "sum over neurons of squared weight on a feature",
        title="energy of a feature",
        y_log=True,
    )
    return Picture(
        "growth",
        "Growth is proportional to frequency (7)",
        f"Left: rate over the first {steps} steps; points with 95 % intervals over "
        f"{results.sizes['seed']} runs, the line from the data model alone. Right: what becomes of "
        "it.",
        [rates, energy_panel],
    )


def _loss(study: ContrastDynamics, results: xr.Dataset) -> Picture:
    curves = []
    for eps in results["eps_min"].values:
        role = f"eps_min {eps:g}"
        rows = results["loss"].sel(eps_min=eps).transpose("seed", "step").values
        step = results["step"].values
        curves.append(mean_curve(f"eps_min={eps:g}", step, rows, role))
        floor = np.full(len(step), float(results["floor"].sel(eps_min=eps).mean()))
        curves.append(Curve(f"floor, eps_min={eps:g}", step, floor, role=role, style="dotted"))
    marks = [
        (time, label)
        for time, label in ((t3(study.d, study.lr), "T3"), (t4(study.d, study.lr), "T4"))
        if time <= study.steps
    ]
    return Picture(
        "loss",
        "The loss stays above 0, and above its floor (11)",
        "Dotted: the loss of a perfect encoder. Samples of a batch that contain the same features "
        "with the same signs cannot be told apart, and with few features many contain none at all.",
        [Lines(curves, "training step", "contrastive loss (nats)", marks=marks)],
    )


def _heat_map(study: ContrastDynamics, results: xr.Dataset) -> Picture:
    panels = []
    features = results["feature"].values
    for eps in (results["eps_min"].values[0], results["eps_min"].values[-1]):
        values = results["map"].sel(eps_min=eps).isel(seed=0).values
        panels.append(
            HeatMap(
                values,
                [f"{j}" if j < study.majority else f"{j}*" for j in features],
                [f"{i}" for i in results["neuron"].values],
                "feature (* minority)",
                "neuron",
                "squared cosine",
                title=f"eps_min = {eps:g}",
            )
        )
    return Picture(
        "map",
        "What each neuron has learnt",
        "Squared cosine of the neurons with the features, at the last step: one run, the first "
        "of its setting.",
        panels,
    )
