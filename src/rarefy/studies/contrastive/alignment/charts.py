"""Pictures and the table of ``contrast-alignment``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.studies.contrastive.alignment.claims import EXPONENTS, convergence_reads
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.studies.contrastive.exponents import exponent_in_eps
from rarefy.studies.contrastive.setting import GROUPS
from rarefy.studies.contrastive.words import bias_name, middle_sigma, spelled_slope
from rarefy.studies.kit.chart import Chart
from rarefy.studies.kit.slices import curve_along, every
from rarefy.theory.contrastive import coefficient_scale, feature_energy_scale


def pictures(experiment: AlignmentExperiment, results: xr.Dataset) -> list[Picture]:
    charts = [
        _figure(experiment, results, "aligned", "neurons with cosine >= 0.3", "Fig. 2"),
        _figure(experiment, results, "best", "largest cosine", "Fig. 3"),
        _over_time(results),
    ]
    return [*(chart.picture(results) for chart in charts), _scaling(experiment, results)]


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


def _scaling(experiment: AlignmentExperiment, results: xr.Dataset) -> Picture:
    last = results.sel(sigma=middle_sigma(results), read=convergence_reads(experiment)[0])
    eps = results["eps_min"].values
    panels = []
    for name, predicted, power, label in (
        ("top_weight", coefficient_scale, 1, "largest weight on a feature, minority / majority"),
        ("energy", feature_energy_scale, 2, "sum of squared weights, minority / majority"),
    ):
        ratio = last[name].sel(group="minority") / last[name].sel(group="majority")
        curves = [
            curve_along(bias_name(bias), here, "eps_min", bias_name(bias))
            for (bias,), here in every(ratio, "bias_scale")
        ]
        theory = Curve(f"slope {power}", eps, predicted(eps), role="theory", style="dashed")
        panels.append(Lines([*curves, theory], "eps_min / eps_max", label, x_log=True, y_log=True))
    return Picture(
        "scaling",
        "Weight on a feature against its frequency (13), (89)",
        f"Read at step {int(last['read'])} at sigma={float(last['sigma']):g}. The dashed "
        "line has the predicted slope, not a fitted height.",
        panels,
    )


def tables(experiment: AlignmentExperiment, results: xr.Dataset) -> list[Table]:
    """The exponents of C6 and C15 at every read, since a power law at one step may be passing."""
    sigma = middle_sigma(results)
    rows = [
        [
            bias_name(bias),
            f"{claim} {what or 'energy'}",
            f"{power:g}",
            *(spelled_slope(exponent_in_eps(here[name].sel(read=r))) for r in experiment.reads),
        ]
        for (bias,), here in every(results.sel(sigma=sigma), "bias_scale")
        for name, claim, power, what in EXPONENTS
    ]
    heads = ["bias", "quantity", "predicted", *(f"step {read}" for read in experiment.reads)]
    title = "Exponent in eps_min/eps_max of minority over majority weights, over training"
    caption = (
        f"Log-log slopes with 95 % bootstrap intervals over {results.sizes['seed']} seeds, at "
        f"sigma={sigma:g}. Theorem 3.1 speaks of steps up to T4 = d^1.99/eta."
    )
    return [Table("exponents", title, caption, heads, rows)]
