"""Pictures of ``contrast-heatmap``."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

from rarefy.core.picture import HeatMap, Lines, Picture
from rarefy.measure.neuron_kinds import MIXED, PURE, neuron_kinds
from rarefy.measure.neurons import carried
from rarefy.studies.contrastive.heatmap.experiment import HeatmapExperiment
from rarefy.studies.contrastive.setting import GROUPS
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every

FIGURES = {"000": "Fig. 6", "001": "Fig. 1 of the workshop paper"}
Note = tuple[int, int, str]


def pictures(experiment: HeatmapExperiment, results: xr.Dataset) -> list[Picture]:
    maps = [_map(experiment, results, str(variant)) for variant in results["variant"].values]
    return [*maps, _over_eps(experiment, results)]


def cell_notes(cosines: np.ndarray) -> list[Note]:
    """'pure' in the cell of a pure neuron's feature, 'mix' in every cell a mixed neuron carries."""
    values = torch.as_tensor(cosines, dtype=torch.float64)[None]
    kinds, part = neuron_kinds(values)[0], carried(values)[0]
    notes = [(int(i), int(values[0, i].argmax()), "pure") for i in (kinds == PURE).nonzero()]
    mixed = (kinds == MIXED)[:, None] & part
    return notes + [(int(i), int(j), "mix") for i, j in mixed.nonzero().tolist()]


def _map(experiment: HeatmapExperiment, results: xr.Dataset, variant: str) -> Picture:
    rows, first_minority = experiment.shown(variant), experiment.majority
    shown = results["map"].sel(variant=variant, eps_min=experiment.figure_eps)
    runs = results["seed"].values[results["seed"].values < experiment.maps]
    panels = []
    for (run, bias), at in every(shown.sel(seed=runs), "seed", "bias_scale"):
        cosines = at.transpose("neuron", "feature").values[:rows]
        groups = f"majority: 0-{first_minority - 1}, minority: {first_minority}-{experiment.d - 1}"
        panels.append(
            HeatMap(
                cosines,
                list(range(experiment.d)),
                [str(neuron) for neuron in range(rows)],
                f"feature ({groups})",
                "neuron",
                "squared cosine",
                title=bias_name(bias) + (f", run {run}" if len(runs) > 1 else ""),
                notes=cell_notes(cosines),
            )
        )
    which = "One run, the first (seed 0)" if len(runs) == 1 else f"The first {len(runs)} runs"
    of = f"{experiment.neurons_001} neurons, the first {rows} shown" if variant == "001" else ""
    return Picture(
        f"map-{variant}",
        f"Squared cosine of neurons with features, as in {FIGURES[variant]}",
        f"{which}, not chosen by looks: {of or f'{rows} neurons'} in the order of their numbers, "
        f"eps_min={experiment.figure_eps:g}, step {experiment.figure_read}. The notes are set by "
        "rule: 'pure' where one feature has a squared cosine of at least 0.09 and four times that "
        "of any other (the paper's lucky neurons), 'mix' at the features of a neuron that two or "
        "more of them share, a tenth of its squared norm or more each. Rows without a note are "
        f"neither. Chance would give 1/d1={1 / experiment.d1:g} everywhere. Which kind is common "
        "depends on the bias: without one nearly all neurons are mixtures.",
        panels,
    )


def _over_eps(experiment: HeatmapExperiment, results: xr.Dataset) -> Picture:
    at = results.sel(read=experiment.figure_read)
    panels = []
    for (variant, bias), here in every(at, "variant", "bias_scale"):
        pure, mixed = here["pure"], here["mixed"].sum("group", skipna=False)
        curves = [curve_along(f"pure, {g}", pure.sel(group=g), "eps_min", g) for g in GROUPS]
        curves.append(curve_along("mixed", mixed, "eps_min", "mixed"))
        labels = ("minority frequency, eps_min", f"neurons of {experiment.shown(variant)} shown")
        panels.append(Lines(curves, *labels, f"{FIGURES[str(variant)]}, {bias_name(bias)}"))
    return Picture(
        "kinds",
        "How many neurons of each kind, against the frequency of the minority",
        f"Counts in the map at step {experiment.figure_read}, means over {results.sizes['seed']} "
        "runs with 95 % intervals. There are more majority features than minority ones "
        f"({experiment.majority} to {experiment.minority}), so at eps_min=1 the two pure counts "
        "should stand in that proportion. With the paper's bias pure minority neurons appear only "
        "as eps_min nears 1; without a bias few neurons are pure at all, and the groups look alike "
        "by this step unless the minority is very rare.",
        panels,
    )
