"""Pictures and the table of ``contrast-separability``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.strata import adjusted_means, pooled
from rarefy.studies.contrastive.separability.claims import MOST, WORDS, by_feature, within_groups
from rarefy.studies.contrastive.separability.experiment import SeparabilityExperiment
from rarefy.studies.contrastive.setting import GROUPS
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every

ACCURACY = "balanced accuracy of probes"


def pictures(experiment: SeparabilityExperiment, results: xr.Dataset) -> list[Picture]:
    return [_against_count(experiment, results), _against_eps(experiment, results)]


def _against_count(experiment: SeparabilityExperiment, results: xr.Dataset) -> Picture:
    panels = []
    levels = np.arange(MOST + 1)
    for (bias,), at in every(results.sel(read=experiment.figure_read), "bias_scale"):
        count = by_feature(at["pure"])
        curves = []
        for (reading,), here in every(at["accuracy"], "reading"):
            quality, label = by_feature(here), WORDS[str(reading)]
            raw = adjusted_means(pooled(count), pooled(quality), levels)
            inside = adjusted_means(count, quality, levels, experiment.groups())
            curves += [
                Curve(label, levels, *raw[:3], label),
                Curve(f"{label}, within groups", levels, *inside[:3], label, "dashed"),
            ]
        x_label = "pure neurons (last point: or more)"
        panels.append(Lines(curves, x_label, ACCURACY, bias_name(bias)))
    return Picture(
        "pure-neurons",
        "Probe quality of a feature against the number of neurons pure in it (Remark 3)",
        f"After {experiment.figure_read} steps; 95 % intervals over {results.sizes['seed']} seeds. "
        "Solid: all features of all runs. Frequent features have more pure neurons and are learned "
        "better altogether, so that a rise here need not come from purity. Dashed: features of the "
        "same group at the same eps_min are compared, where frequency explains nothing: most of "
        "the gain comes with the first pure neuron. A count that too few runs show is taken "
        "together with the one below it. Reading a sign "
        "off f without a bias is perfect for nearly every feature, pure neurons or not: the "
        "network is then linear, and a linear probe undoes any mixture.",
        panels,
    )


def _against_eps(experiment: SeparabilityExperiment, results: xr.Dataset) -> Picture:
    panels = []
    eps, groups = results["eps_min"].values, experiment.groups()
    for (reading, bias), here in every(results["accuracy"], "reading", "bias_scale"):
        shown = here.sel(read=experiment.figure_read)
        means = {g: shown.isel(feature=groups == g).mean("feature") for g in GROUPS}
        curves = [curve_along(group, mean, "eps_min", group) for group, mean in means.items()]
        if 0 in experiment.reads:
            untrained = here.sel(read=0).mean("feature")
            curves.append(curve_along("untrained, all", untrained, "eps_min", "baseline", "dashed"))
        # also keeps panels without any variation from being blown up
        chance = Curve("chance", eps, np.full(len(eps), 0.5), role="bound", style="dotted")
        title = f"{WORDS[str(reading)]}, {bias_name(bias)}"
        x_label = "minority frequency in training, eps_min"
        panels.append(Lines([*curves, chance], x_label, ACCURACY, title))
    return Picture(
        "frequency",
        "Probe quality against eps_min",
        f"After {experiment.figure_read} steps, balanced test data; an encoder of one neuron a "
        f"feature gets {float(results['ceiling'].mean()):.3f}. The sign without a bias is read off "
        "almost perfectly everywhere. In the other panels rare features are hard to read off, and "
        "the others easier the rarer they are: neurons that need not share. With the paper's bias "
        "features that are clearly rarer than the others are read off less well than from random "
        "neurons (grey): what passes no threshold is gone.",
        panels,
    )


def tables(experiment: SeparabilityExperiment, results: xr.Dataset) -> list[Table]:
    """Within-group rank correlations at every read."""
    rows: list[list[object]] = []
    for (bias, read, reading), at in every(results, "bias_scale", "read", "reading"):
        trend = within_groups(experiment, at["pure"], at["accuracy"], 0)
        rho = f"{trend.rho:.2f} [{trend.low:.2f}, {trend.high:.2f}]"
        spelled = rho if np.isfinite(trend.rho) else "no variation"
        accuracy = f"{float(at['accuracy'].mean()):.3f}"
        rows.append([bias_name(bias), int(read), WORDS[str(reading)], accuracy, spelled])
    heads = ["bias", "step", "probe", "accuracy", "rho(accuracy, pure)"]
    title = "Does the probe of a feature follow the number of its pure neurons?"
    caption = "Rank correlations among features of one group at one eps_min, 95 % intervals."
    return [Table("within-groups", title, caption, heads, rows)]
