"""Pictures of ``contrast-dynamics``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.contrastive.dynamics.claims import measured_rate, predicted_growth
from rarefy.studies.contrastive.dynamics.experiment import DynamicsExperiment
from rarefy.studies.kit.slices import every


def pictures(experiment: DynamicsExperiment, results: xr.Dataset) -> list[Picture]:
    return [_one_neuron(results), _rates(experiment, results)]


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
    return Picture(
        "growth",
        "Growth is proportional to frequency (7)",
        f"Rate over the first {experiment.stage_1_steps} steps; points with 95 % intervals over "
        f"{results.sizes['seed']} runs, the line from the data model alone.",
        [Lines(both, *labels)],
    )
