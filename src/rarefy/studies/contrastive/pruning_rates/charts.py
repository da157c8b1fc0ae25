"""The picture and the table of ``contrast-pruning-rates``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.studies.contrastive.pruning_rates.claims import predicted_rates
from rarefy.studies.contrastive.pruning_rates.experiment import PruningRatesExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every
from rarefy.theory.contrastive_pruning import elapsed_time


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


def tables(experiment: PruningRatesExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    mean = results.isel(pruned=-1).mean("seed")
    predicted = predicted_rates(experiment, results).isel(pruned=-1)
    for (bias, d, eps), at in every(mean, "bias_scale", "features", "eps_min"):
        least, sized = predicted.sel(features=d, eps_min=eps), experiment.sized(int(d))
        alpha, constant = experiment.pruned[-1] / sized.neurons, sized.growth_constant
        time = elapsed_time(float(eps), float(eps), alpha, sized.lr, constant)
        rate = float(at["rare"])
        own = (1 / float(eps) - 1) / rate if rate > 0 else float("inf")
        rates = (rate, least["rare"], at["others"], least["others"], time, own)
        numbers = (f"{float(value):.3g}" for value in rates)
        rows.append([f"{float(bias):g}", int(d), f"{float(eps):g}", *numbers])
    heads = ("rare, measured", "rare, (15)", "others, measured", "others, (16)", "steps, F.4")
    title = "Added growth a step and the time it would take to make up for the imbalance"
    caption = (
        f"All {experiment.pruned[-1]} neurons of the rare feature pruned; mean over "
        f"{results.sizes['seed']} seeds. Last columns: T5 - T4 of App. F.4, and the same with the "
        "measured first rate in place of (15)."
    )
    columns = ["bias", "d", "eps", *heads, "steps, measured rate"]
    return [Table("rates", title, caption, columns, rows)]
