"""Pictures and the table of ``contrast-pruning``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.studies.contrastive.pruning.claims import BEGIN_NAMES, Condition, conditions
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every

FREQUENCY = "minority frequency, eps_min"


def _places(experiment: PruningExperiment, results: xr.Dataset) -> list[tuple[str, Condition]]:
    """Every beginning with and without the bias, pruned as what decides is."""
    return [
        (f"{BEGIN_NAMES[at.begin]}, {bias_name(at.bias)}", at)
        for at in conditions(experiment, results)
        if at.words in ("", *map(bias_name, experiment.bias_scale))
    ]


def pictures(experiment: PruningExperiment, results: xr.Dataset) -> list[Picture]:
    places = _places(experiment, results)
    return [_who_is_pruned(experiment, places), _imbalance(experiment, places)]


def _who_is_pruned(experiment: PruningExperiment, places: list[tuple[str, Condition]]) -> Picture:
    eps = experiment.eps_min[-1]
    panels = []
    for title, at in places:
        here = at.pruned.sel(eps_min=eps)
        curves = [
            curve_along("among the pruned", here["pruned_rare"], "read", "minority"),
            curve_along("among all neurons", here["neurons_rare"], "read", "noise", "dashed"),
        ]
        panels.append(Lines(curves, "training step", "share that are rare neurons", title=title))
    return Picture(
        "who-is-pruned",
        "Who is left out: is it the neurons of the rare feature? (P4)",
        "The gain from pruning rests on the rare feature having the smallest neurons. A neuron "
        f"belongs to the feature it is strongest on; alpha = {places[0][1].alpha:.2g}, eps_min = "
        f"{eps:g}; bands are 95 % intervals of the mean over runs. Solid above dashed: rare "
        "neurons are pruned more than by chance. In trained networks with the bias the smallest "
        "are silent neurons, which carry no feature.",
        panels,
    )


def _imbalance(experiment: PruningExperiment, places: list[tuple[str, Condition]]) -> Picture:
    panels = []
    for title, place in places:
        last = place.here.isel(read=-1)["energy"]
        ratio = last.sel(group="minority") / last.sel(group="majority")
        curves = []
        for (alpha,), at in every(ratio, "alpha"):
            style = "dashed" if alpha == 0 else "solid"
            label = "not pruned" if alpha == 0 else f"alpha = {alpha:.2g}"
            curves.append(curve_along(label, at, "eps_min", label, style))
        labels = (FREQUENCY, "squared weight, rare / frequent")
        panels.append(Lines(curves, *labels, title=title, x_log=True))
    return Picture(
        "imbalance",
        "Does the weight on rare features still depend on how rare they are? (18)",
        f"At step {experiment.reads[-1]}. A flat line at 1: imbalance is overcome. Pruning has "
        "something to add where the dashed line is steep; from the theorem's state training alone "
        "flattens it.",
        panels,
    )


def tables(experiment: PruningExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    for title, place in _places(experiment, results):
        last = place.here.isel(read=-1).mean(["seed", "eps_min"])
        for (alpha,), at in every(last, "alpha"):
            numbers = [
                f"{float(at[name].sel(group=group)):.3g}"
                for name in ("pure", "norm", "energy")
                for group in ("minority", "majority")
            ]
            rows.append([title, f"{alpha:.2g}", *numbers, f"{float(at['pure_pruned']):.2g}"])
    heads = ("pure, rare", "frequent", "their norm, rare", "frequent", "energy, rare", "frequent")
    title = "Pure neurons of a feature, how large they are, and whether they are pruned"
    caption = (
        f"At step {experiment.reads[-1]}, mean over runs and eps_min. Last column: share of the "
        "rare feature's pure neurons that is pruned. When alpha takes all neurons of a feature, "
        "as the largest does in the theorem's state, training does not come to rest."
    )
    return [Table("pure", title, caption, ["beginning", "alpha", *heads, "rare pruned"], rows)]
