"""Pictures and the table of ``contrast-alignment``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.contrastive._alignment_verdicts import (
    EXPONENTS,
    MEANINGS,
    convergence_reads,
    middle_sigma,
)
from rarefy.studies.contrastive._contrastive import GROUPS
from rarefy.studies.contrastive._exponents import exponent_in_eps
from rarefy.studies.contrastive._words import bias_name, rows
from rarefy.theory.contrastive import coefficient_scale, feature_energy_scale

if TYPE_CHECKING:
    from rarefy.studies.contrastive.contrast_alignment import ContrastAlignment


def alignment_pictures(study: ContrastAlignment, results: xr.Dataset) -> list[Picture]:
    return [
        _figure(study, results, "aligned", "neurons with cosine >= 0.3", "Fig. 2"),
        _figure(study, results, "best", "largest cosine", "Fig. 3"),
        _over_time(results),
        _scaling(study, results),
    ]


def _figure(
    study: ContrastAlignment, results: xr.Dataset, name: str, label: str, number: str
) -> Picture:
    panels = []
    for scale_of_bias in results["bias_scale"].values:
        at = results.sel(bias_scale=scale_of_bias, read=study.figure_read, group="minority")
        curves = []
        for sigma in results["sigma"].values:
            nsr = f"NSR {sigma**2 * study.d1:.2g}"
            sample = rows(at[name].sel(sigma=sigma))
            curves.append(mean_curve(nsr, results["eps_min"].values, sample, nsr))
        panels.append(
            Lines(
                curves,
                "minority frequency, eps_min",
                f"{label} (mean over minority features)",
                title=bias_name(scale_of_bias),
            )
        )
    return Picture(
        name,
        f"Minority alignment against eps_min: {label} ({number})",
        f"Read at step {study.figure_read}; bands are 95 % intervals of the mean over "
        f"{results.sizes['seed']} runs. One curve a noise-to-signal ratio NSR = sigma^2 d1.",
        panels,
    )


def _over_time(results: xr.Dataset) -> Picture:
    panels = []
    sigma = middle_sigma(results)
    for scale_of_bias in results["bias_scale"].values:
        at = results.sel(bias_scale=scale_of_bias, sigma=sigma)
        curves = []
        for group in GROUPS:
            for eps, style in (
                (at["eps_min"].values[0], "solid"),
                (at["eps_min"].values[-1], "dashed"),
            ):
                sample = at["best"].sel(group=group, eps_min=eps).transpose("seed", "read").values
                label = f"{group}, eps_min={eps:g}"
                curves.append(mean_curve(label, results["read"].values, sample, group, style))
        panels.append(
            Lines(
                curves,
                "training step",
                "largest cosine (mean over features)",
                title=bias_name(scale_of_bias),
                x_log=True,
            )
        )
    return Picture(
        "over-time",
        "The same quantity over time",
        "Without a bias the minority features only come later; with the paper's bias the gap "
        "stays much longer. A figure read at one step says as much about the training budget as "
        "about imbalance.",
        panels,
    )


def _scaling(study: ContrastAlignment, results: xr.Dataset) -> Picture:
    last = results.sel(sigma=middle_sigma(results), read=convergence_reads(study)[0])
    eps = results["eps_min"].values
    panels = []
    for name, predicted, exponent, label in (
        ("top_weight", coefficient_scale, 1, "largest weight on a feature, minority / majority"),
        ("energy", feature_energy_scale, 2, "sum of squared weights, minority / majority"),
    ):
        curves = []
        for scale_of_bias in results["bias_scale"].values:
            values = last[name].sel(bias_scale=scale_of_bias)
            sample = rows(values.sel(group="minority") / values.sel(group="majority"))
            text = bias_name(scale_of_bias)
            curves.append(mean_curve(text, eps, sample, text))
        curves.append(
            Curve(f"slope {exponent}", eps, predicted(eps), role="theory", style="dashed")
        )
        panels.append(Lines(curves, "eps_min / eps_max", label, x_log=True, y_log=True))
    return Picture(
        "scaling",
        "Weight on a feature against its frequency (13), (89)",
        f"Read at step {int(last['read'])} at sigma={float(last['sigma']):g}. The dashed "
        "line has the predicted slope, not a fitted height.",
        panels,
    )


def exponents_over_time(study: ContrastAlignment, results: xr.Dataset) -> Table:
    """The exponents of C6 and C15 at every read, since a power law at one step may be passing."""
    at = results.sel(sigma=middle_sigma(results))
    table: list[list[object]] = []
    for scale_of_bias in results["bias_scale"].values:
        for name, claim, exponent in EXPONENTS:
            cells: list[object] = []
            for read in study.reads:
                values = at[name].sel(bias_scale=scale_of_bias, read=read)
                slope = exponent_in_eps(values)
                cells.append(f"{slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]")
            what = f"{claim} {MEANINGS[name].rstrip(', ') or 'energy'}"
            table.append([bias_name(scale_of_bias), what, f"{exponent:g}", *cells])
    return Table(
        "exponents",
        "Exponent in eps_min/eps_max of minority over majority weights, over training",
        f"Log-log slopes with 95 % bootstrap intervals over {results.sizes['seed']} seeds, at "
        f"sigma={middle_sigma(results):g}. Theorem 3.1 speaks of steps up to T4 = d^1.99/eta.",
        ["bias", "quantity", "predicted", *(f"step {read}" for read in study.reads)],
        table,
    )
