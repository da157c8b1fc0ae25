"""The picture of ``contrast-pruning-rates``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.studies.contrastive.pruning_rates.claims import predicted_rates
from rarefy.studies.contrastive.pruning_rates.experiment import PruningRatesExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every


def pictures(experiment: PruningRatesExperiment, results: xr.Dataset) -> list[Picture]:
    panels = []
    eps = experiment.eps_min[len(experiment.eps_min) // 2]
    at = {"eps_min": eps, "pruned": experiment.pruned[-1]}
    theory, x = predicted_rates(experiment, results).sel(at), results["features"].values
    bounds = [
        Curve("(15), at least", x, theory["rare"].values, role="theory", style="dashed"),
        Curve("(16), at most", x, theory["others"].values, role="theory", style="dotted"),
    ]
    for (bias,), here in every(results.sel(at), "bias_scale"):
        rare = curve_along("rare feature, its own neurons", here["rare"], "features", "minority")
        others = curve_along("other features, all neurons", here["others"], "features", "majority")
        labels = ("number of features, d", "growth a step, added")
        curves = [rare, others, *bounds]
        panels.append(Lines(curves, *labels, title=bias_name(bias), x_log=True, y_log=True))
    caption = (
        f"All {experiment.pruned[-1]} neurons of the one rare feature (eps = {eps:g}) are left out "
        "of the forward pass; then one step is compared with an unpruned one on the same batches. "
        "The rare feature gains because its samples now look badly matched; another feature gains "
        "only on samples that have both. Lines of theory have their constants set to 1 and are "
        "not fitted; 95 % intervals."
    )
    title = "Growth that one pruned step adds, against the number of features"
    return [Picture("rates", title, caption, panels)]
