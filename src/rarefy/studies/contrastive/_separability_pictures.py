"""Pictures and the table of ``contrast-separability``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.measure.estimates import Band
from rarefy.measure.strata import adjusted_means, pooled
from rarefy.measure.trends import Trend
from rarefy.studies.contrastive._contrastive import GROUPS
from rarefy.studies.contrastive._separability_verdicts import MOST, WORDS, by_feature, within_groups
from rarefy.studies.contrastive._words import bias_name, rows

if TYPE_CHECKING:
    from rarefy.studies.contrastive.contrast_separability import ContrastSeparability

ACCURACY = "balanced accuracy of probes"


def separability_pictures(study: ContrastSeparability, results: xr.Dataset) -> list[Picture]:
    return [_against_count(study, results), _against_eps(study, results), _over_time(results)]


def _against_count(study: ContrastSeparability, results: xr.Dataset) -> Picture:
    panels = []
    levels = np.arange(MOST + 1)
    for bias in results["bias_scale"].values:
        at = results.sel(bias_scale=bias, read=study.figure_read)
        count = by_feature(at["pure"])
        curves = []
        for reading in results["reading"].values:
            quality = by_feature(at["accuracy"].sel(reading=reading))
            label = WORDS[str(reading)]
            raw = adjusted_means(pooled(count), pooled(quality), levels)
            curves.append(_curve(label, levels, raw, label))
            inside = adjusted_means(count, quality, levels, study.groups())
            curves.append(_curve(f"{label}, within groups", levels, inside, label, "dashed"))
        x_label = "pure neurons (last point: or more)"
        panels.append(Lines(curves, x_label, ACCURACY, bias_name(bias)))
    return Picture(
        "pure-neurons",
        "Probe quality of a feature against the number of neurons pure in it (Remark 3)",
        f"After {study.figure_read} steps; 95 % intervals over {results.sizes['seed']} seeds. "
        "Solid: all features of all runs. Frequent features have more pure neurons and are learned "
        "better altogether, so that a rise here need not come from purity. Dashed: features of the "
        "same group at the same eps_min are compared, where frequency explains nothing: most of "
        "the gain comes with the first pure neuron. A count that too few runs show is taken "
        "together with the one below it. Reading a sign "
        "off f without a bias is perfect for nearly every feature, pure neurons or not: the "
        "network is then linear, and a linear probe undoes any mixture.",
        panels,
    )


def _against_eps(study: ContrastSeparability, results: xr.Dataset) -> Picture:
    panels = []
    eps = results["eps_min"].values
    for reading in results["reading"].values:
        for bias in results["bias_scale"].values:
            here = results["accuracy"].sel(bias_scale=bias, reading=reading)
            curves = []
            for group in GROUPS:
                mean = here.isel(feature=study.groups() == group).mean("feature")
                curves.append(mean_curve(group, eps, rows(mean.sel(read=study.figure_read)), group))
            if 0 in study.reads:
                untrained = rows(here.sel(read=0).mean("feature"))
                curves.append(mean_curve("untrained, all", eps, untrained, "baseline", "dashed"))
            # also keeps panels without any variation from being blown up
            curves.append(
                Curve("chance", eps, np.full(len(eps), 0.5), role="bound", style="dotted")
            )
            title = f"{WORDS[str(reading)]}, {bias_name(bias)}"
            x_label = "minority frequency in training, eps_min"
            panels.append(Lines(curves, x_label, ACCURACY, title))
    return Picture(
        "frequency",
        "Probe quality against eps_min",
        f"After {study.figure_read} steps, balanced test data; an encoder of one neuron a feature "
        f"gets {float(results['ceiling'].mean()):.3f}. The sign without a bias is read off almost "
        "perfectly everywhere. In the other panels rare features are hard to read off, and the "
        "others easier the rarer they are: neurons that need not share. With the paper's bias "
        "features that are clearly rarer than the others are read off less well than from random "
        "neurons (grey): what passes no threshold is gone.",
        panels,
    )


def _over_time(results: xr.Dataset) -> Picture:
    panels = []
    for bias in results["bias_scale"].values:
        here = results.sel(bias_scale=bias).mean("feature")
        curves = []
        for reading in results["reading"].values:
            for eps, style in zip(
                results["eps_min"].values[[0, -1]], ("solid", "dashed"), strict=True
            ):
                sample = here["accuracy"].sel(reading=reading, eps_min=eps)
                label = f"{WORDS[str(reading)]}, eps_min={eps:g}"
                role = WORDS[str(reading)]
                values = sample.transpose("seed", "read").values
                curves.append(mean_curve(label, results["read"].values, values, role, style))
        panels.append(Lines(curves, "training step", ACCURACY, bias_name(bias)))
    return Picture(
        "over-time",
        "Probe quality over training",
        "Mean over all features; smallest eps_min solid, largest dashed. Step 0 is the untrained "
        "network. With the paper's bias training first destroys what random neurons kept of every "
        "feature, then wins back some of what it specialises in.",
        panels,
    )


def rho_table(study: ContrastSeparability, results: xr.Dataset) -> Table:
    """Within-group rank correlations of two qualities with two counts, at every read."""
    table: list[list[object]] = []
    for bias in results["bias_scale"].values:
        for read in study.reads:
            at = results.sel(bias_scale=bias, read=read)
            literal = f"{float(at['literal'].mean()):.3f}"
            for reading in results["reading"].values:
                here = at.sel(reading=reading)
                quality = [f"{float(here[name].mean()):.3f}" for name in ("accuracy", "auroc")]
                rho = [
                    _spelled(within_groups(study, here[count], here[name], 0))
                    for name in ("accuracy", "auroc")
                    for count in ("pure", "aligned")
                ]
                words = WORDS[str(reading)]
                table.append([bias_name(bias), read, words, *quality, *rho, literal])
    return Table(
        "within-groups",
        "Does the probe of a feature follow the number of its neurons?",
        "Rank correlations among features of one group at one eps_min, with 95 % intervals: with "
        "neurons pure in the feature, and with all neurons whose cosine to it is at least 0.3. "
        "Last column: AUROC of the literal reading, a probe for presence on f itself, which "
        f"symmetry holds at 0.5.{_missing(results)}",
        [
            "bias",
            "step",
            "probe",
            "accuracy",
            "AUROC",
            "rho(accuracy, pure)",
            "rho(accuracy, aligned)",
            "rho(AUROC, pure)",
            "rho(AUROC, aligned)",
            "literal",
        ],
        table,
    )


def _curve(label: str, levels: np.ndarray, band: Band, role: str, style: str = "solid") -> Curve:
    return Curve(label, levels, band.mean, band.low, band.high, role, style)


def _missing(results: xr.Dataset) -> str:
    """How many probes could not be trained or tested, in all networks that stayed finite."""
    number = int(results["missing"].sum())
    total = int(results["missing"].count()) * 3 * results.sizes["feature"]
    return f" Of {total} probes {number} have no result and are left out." if number else ""


def _spelled(trend: Trend) -> str:
    if not np.isfinite(trend.rho):
        return "no variation"
    return f"{trend.rho:.2f} [{trend.low:.2f}, {trend.high:.2f}]"
