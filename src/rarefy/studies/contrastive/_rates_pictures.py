"""The picture and the table of ``contrast-pruning-rates``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.contrastive._pruning_reading import growth_constant
from rarefy.studies.contrastive._rates_verdicts import predicted_rates
from rarefy.studies.contrastive._words import bias_name
from rarefy.theory.contrastive_pruning import elapsed_time

if TYPE_CHECKING:
    from rarefy.studies.contrastive.contrast_pruning_rates import ContrastPruningRates


def rates_pictures(study: ContrastPruningRates, results: xr.Dataset) -> list[Picture]:
    panels = []
    predicted = predicted_rates(study, results)
    eps = study.eps_min[len(study.eps_min) // 2]
    x = results["features"].values
    for bias in results["bias_scale"].values:
        here = results.sel(bias_scale=bias, eps_min=eps).isel(pruned=-1)
        theory = predicted.sel(eps_min=eps).isel(pruned=-1)
        curves = [
            mean_curve(label, x, here[name].transpose("seed", "features").values, role)
            for name, label, role in (
                ("rare", "rare feature, its own neurons", "minority"),
                ("others", "other features, all neurons", "majority"),
            )
        ]
        curves += [
            Curve(label, x, theory[name].values, role="theory", style=style)
            for name, label, style in (
                ("rare", "(15), at least", "dashed"),
                ("others", "(16), at most", "dotted"),
            )
        ]
        panels.append(
            Lines(
                curves,
                "number of features, d",
                "growth a step, added",
                title=bias_name(bias),
                x_log=True,
                y_log=True,
            )
        )
    return [
        Picture(
            "rates",
            "Growth that one pruned step adds, against the number of features",
            f"All {study.pruned[-1]} neurons of the one rare feature (eps = {eps:g}) are left "
            "out of the forward pass; then one step is compared with an unpruned one on the "
            "same batches. The rare feature gains because its samples now look badly "
            "matched; another feature gains only on samples that have both. Lines of theory "
            "have their constants set to 1 and are not fitted; 95 % intervals.",
            panels,
        )
    ]


def rates_tables(study: ContrastPruningRates, results: xr.Dataset) -> list[Table]:
    table: list[list[object]] = []
    mean, predicted = results.mean("seed"), predicted_rates(study, results)
    for bias in results["bias_scale"].values:
        for d in results["features"].values:
            for eps in results["eps_min"].values:
                at = mean.sel(bias_scale=bias, features=d, eps_min=eps).isel(pruned=-1)
                least = predicted.sel(features=d, eps_min=eps).isel(pruned=-1)
                sized = study.sized(int(d))
                alpha = study.pruned[-1] / sized.neurons
                time = elapsed_time(float(eps), float(eps), alpha, sized.lr, growth_constant(sized))
                rate = float(at["rare"])
                own = (1 / float(eps) - 1) / rate if rate > 0 else float("inf")
                table.append(
                    [
                        f"{float(bias):g}",
                        int(d),
                        f"{float(eps):g}",
                        f"{float(at['rare']):.3g}",
                        f"{float(least['rare']):.3g}",
                        f"{float(at['others']):.3g}",
                        f"{float(least['others']):.3g}",
                        f"{time:.3g}",
                        f"{own:.3g}",
                    ]
                )
    return [
        Table(
            "rates",
            "Added growth a step and the time it would take to make up for the imbalance",
            f"All {study.pruned[-1]} neurons of the rare feature pruned; mean over "
            f"{results.sizes['seed']} seeds. Last columns: T5 - T4 of App. F.4, and the same "
            "with the measured first rate in place of (15).",
            [
                "bias",
                "d",
                "eps",
                "rare, measured",
                "rare, (15)",
                "others, measured",
                "others, (16)",
                "steps, F.4",
                "steps, measured rate",
            ],
            table,
        )
    ]
