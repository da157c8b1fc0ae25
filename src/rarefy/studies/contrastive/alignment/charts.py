"""Pictures of ``contrast-alignment``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Picture
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.studies.contrastive.setting import GROUPS
from rarefy.studies.contrastive.words import bias_name, middle_sigma
from rarefy.studies.kit.chart import Chart


def pictures(experiment: AlignmentExperiment, results: xr.Dataset) -> list[Picture]:
    charts = [
        _figure(experiment, results, "aligned", "neurons with cosine >= 0.3", "Fig. 2"),
        _figure(experiment, results, "best", "largest cosine", "Fig. 3"),
        _over_time(results),
    ]
    # the paper's bias first: it is what the figures are about
    turned = results.sortby("bias_scale", ascending=False)
    return [chart.picture(turned) for chart in charts]


def _figure(
    experiment: AlignmentExperiment, results: xr.Dataset, name: str, label: str, number: str
) -> Chart:
    def nsr(sigma: float) -> str:
        return f"NSR {sigma**2 * experiment.d1:.2g}"

    return Chart(
        name,
        f"Minority alignment against eps_min: {label} ({number})",
        f"Read at step {experiment.figure_read}; bands are 95 % intervals of the mean over "
        f"{results.sizes['seed']} runs. One curve a noise-to-signal ratio NSR = sigma^2 d1.",
        name,
        x="eps_min",
        x_label="minority frequency, eps_min",
        y_label=f"{label} (mean over minority features)",
        curves={"sigma": results["sigma"].values.tolist()},
        label=nsr,
        role=nsr,
        panel="bias_scale",
        panel_title=bias_name,
        at={"read": experiment.figure_read, "group": "minority"},
    )


def _over_time(results: xr.Dataset) -> Chart:
    ends = results["eps_min"].values[[0, -1]].tolist()
    return Chart(
        "over-time",
        "The same quantity over time",
        "Without a bias the minority features only come later; with the paper's bias the gap "
        "stays much longer. A figure read at one step says as much about the training budget as "
        "about imbalance.",
        "best",
        x="read",
        x_label="training step",
        y_label="largest cosine (mean over features)",
        curves={"group": GROUPS, "eps_min": ends},
        label=lambda group, eps_min: f"{group}, eps_min={eps_min:g}",
        role=lambda group, eps_min: group,
        style=lambda group, eps_min: "solid" if eps_min == ends[0] else "dashed",
        panel="bias_scale",
        panel_title=bias_name,
        at={"sigma": middle_sigma(results)},
        x_log=True,
    )
