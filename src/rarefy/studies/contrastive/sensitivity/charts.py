"""The picture and the table of ``contrast-sensitivity``."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Picture, Table
from rarefy.studies.contrastive.sensitivity.experiment import VARIATIONS, SensitivityExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.chart import Chart
from rarefy.studies.kit.slices import every


def pictures(experiment: SensitivityExperiment, results: xr.Dataset) -> list[Picture]:
    chart = Chart(
        "read",
        "The step at which the figure is read",
        "Hyper-parameters as chosen; 95 % intervals. What is a trend early is flat late when "
        "there is no bias.",
        "best",
        x="eps_min",
        x_label="minority frequency, eps_min",
        y_label="largest cosine (mean over minority features)",
        curves={"read": experiment.reads},
        label=lambda read: f"step {read}",
        role=lambda read: f"step {read}",
        panel="bias_scale",
        panel_title=bias_name,
        at={"variation": experiment.variation[0]},
    )
    return [chart.picture(results)]


def tables(experiment: SensitivityExperiment, results: xr.Dataset) -> list[Table]:
    ends = float(results["eps_min"].min()), float(results["eps_min"].max())
    columns = list(product(experiment.reads, ends))
    rows = []
    for (variation, bias), at in every(results[["best"]].mean("seed"), "variation", "bias_scale"):
        means = [float(at["best"].sel(read=read, eps_min=eps)) for read, eps in columns]
        spelled = [f"{mean:.2f}" if np.isfinite(mean) else "diverged" for mean in means]
        rows.append([VARIATIONS[int(variation)][0], bias_name(bias), *spelled])
    heads = ["changed", "bias", *(f"step {read}: eps_min {eps:g}" for read, eps in columns)]
    title = "Largest minority cosine, one hyper-parameter changed at a time"
    caption = (
        f"Mean over {results.sizes['seed']} runs. As chosen: lr 0.5 (about 6 steps to T1), tau 1, "
        "batch 64, 2 tokens that both show a feature, activation 0.3 (2.7 features a sample when "
        "balanced), weight decay 0.001, sigma_0 0.001 (flat logits at the start)."
    )
    return [Table("sensitivity", title, caption, heads, rows)]
