"""Pictures and the table of ``contrast-heatmap``."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
import xarray as xr

from rarefy.core.picture import HeatMap, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.measure.neuron_kinds import MIXED, PURE, neuron_kinds
from rarefy.measure.neurons import carried
from rarefy.studies.contrastive._words import bias_name

if TYPE_CHECKING:
    from rarefy.studies.contrastive.contrast_heatmap import ContrastHeatmap

FIGURES = {"000": "000 Fig. 6", "001": "001 Fig. 1"}
Note = tuple[int, int, str]


def heatmap_pictures(study: ContrastHeatmap, results: xr.Dataset) -> list[Picture]:
    maps = [_map(study, results, str(variant)) for variant in results["variant"].values]
    return [*maps, _over_eps(study, results), _over_time(study, results)]


def cell_notes(cosines: np.ndarray) -> list[Note]:
    """'pure' in the cell of a pure neuron's feature, 'mix' in every cell a mixed neuron carries."""
    values = torch.as_tensor(cosines, dtype=torch.float64)[None]
    kinds, part = neuron_kinds(values)[0], carried(values)[0]
    notes = [(int(i), int(values[0, i].argmax()), "pure") for i in (kinds == PURE).nonzero()]
    mixed = (kinds == MIXED)[:, None] & part
    return notes + [(int(i), int(j), "mix") for i, j in mixed.nonzero().tolist()]


def _map(study: ContrastHeatmap, results: xr.Dataset, variant: str) -> Picture:
    rows, first_minority = study.shown(variant), study.majority
    runs = results["seed"].values[results["seed"].values < study.maps]
    panels = []
    for run, scale_of_bias in product(runs, results["bias_scale"].values):
        at = results["map"].sel(variant=variant, bias_scale=scale_of_bias, eps_min=study.figure_eps)
        cosines = at.sel(seed=run).transpose("neuron", "feature").values[:rows]
        title = bias_name(scale_of_bias)
        panels.append(
            HeatMap(
                cosines,
                list(range(study.d)),
                [str(neuron) for neuron in range(rows)],
                f"feature (majority: 0-{first_minority - 1}, minority: "
                f"{first_minority}-{study.d - 1})",
                "neuron",
                "squared cosine",
                title=title if len(runs) == 1 else f"{title}, run {run}",
                notes=cell_notes(cosines),
            )
        )
    which = "One run, the first (seed 0)" if len(runs) == 1 else f"The first {len(runs)} runs"
    of = f"{study.neurons_001} neurons, the first {rows} shown" if variant == "001" else ""
    return Picture(
        f"map-{variant}",
        f"Squared cosine of neurons with features, as in {FIGURES[variant]}",
        f"{which}, not chosen by looks: {of or f'{rows} neurons'} in the "
        f"order of their numbers, eps_min={study.figure_eps:g}, step {study.figure_read}. The "
        "notes are set by rule: 'pure' where one feature has a squared cosine of at least 0.09 "
        "and four times that of any other (the paper's lucky neurons), 'mix' at the features of a "
        "neuron that two or more of them share, a tenth of its squared norm or more each. Rows "
        "without a "
        f"note are neither. Chance would give 1/d1={1 / study.d1:g} everywhere. Which kind is "
        "common depends on the bias: without one nearly all neurons are mixtures.",
        panels,
    )


def _curves(at: xr.Dataset, dim: str) -> list[tuple[str, str, np.ndarray]]:
    """Label, role and (seed, point) sample of each kind of neuron."""
    pure, mixed = at["pure"], at["mixed"].sum("group", skipna=False)
    return [
        ("pure, majority", "majority", pure.sel(group="majority").transpose("seed", dim).values),
        ("pure, minority", "minority", pure.sel(group="minority").transpose("seed", dim).values),
        ("mixed", "mixed", mixed.transpose("seed", dim).values),
    ]


def _over_eps(study: ContrastHeatmap, results: xr.Dataset) -> Picture:
    panels = []
    for variant in results["variant"].values:
        for scale_of_bias in results["bias_scale"].values:
            at = results.sel(variant=variant, bias_scale=scale_of_bias, read=study.figure_read)
            panels.append(
                Lines(
                    [
                        mean_curve(label, results["eps_min"].values, sample, role)
                        for label, role, sample in _curves(at, "eps_min")
                    ],
                    "minority frequency, eps_min",
                    f"neurons of {study.shown(variant)} shown",
                    title=f"{FIGURES[str(variant)]}, {bias_name(scale_of_bias)}",
                )
            )
    return Picture(
        "kinds",
        "How many neurons of each kind, against the frequency of the minority",
        f"Counts in the map at step {study.figure_read}, means over {results.sizes['seed']} runs "
        "with 95 % intervals. There are more majority features than minority ones "
        f"({study.majority} to {study.minority}), so at eps_min=1 the two pure counts should "
        "stand in that proportion. With the paper's bias pure minority neurons appear only as "
        "eps_min nears 1; without a bias few neurons are pure at all, and the groups look alike "
        "by this step unless the minority is very rare.",
        panels,
    )


def _over_time(study: ContrastHeatmap, results: xr.Dataset) -> Picture:
    panels = []
    variant = str(results["variant"].values[0])
    for scale_of_bias in results["bias_scale"].values:
        at = results.sel(variant=variant, bias_scale=scale_of_bias, eps_min=study.figure_eps)
        panels.append(
            Lines(
                [
                    mean_curve(label, results["read"].values, sample, role)
                    for label, role, sample in _curves(at, "read")
                ],
                "training step",
                f"neurons of {study.shown(variant)} shown",
                title=bias_name(scale_of_bias),
                x_log=True,
                marks=[(study.figure_read, "map drawn")],
            )
        )
    return Picture(
        "over-time",
        f"The same counts over training ({FIGURES[variant]}'s size)",
        f"eps_min={study.figure_eps:g}. A map is a snapshot, and neither paper says at which step "
        "its own was taken. It cannot be told from its lucky neuron of squared cosine 0.3 either: "
        "that is one neuron picked as an example, while the table gives the largest entry of "
        "each map.",
        panels,
    )


def kinds_table(study: ContrastHeatmap, results: xr.Dataset) -> Table:
    """What the verdicts pool, for each eps_min, at the figure's step."""
    at = results.sel(read=study.figure_read).mean("seed")
    rows: list[list[object]] = []
    for variant in results["variant"].values:
        for scale_of_bias in results["bias_scale"].values:
            for eps in results["eps_min"].values:
                here = at.sel(variant=variant, bias_scale=scale_of_bias, eps_min=eps)
                rows.append(
                    [
                        str(variant),
                        bias_name(scale_of_bias),
                        f"{eps:g}",
                        f"{float(here['lucky']):.1f}",
                        f"{float(here['mixed'].sum()):.1f}",
                        _pair(here["column"], ".3f"),
                        _pair(here["carriers"], ".1f"),
                        f"{float(here['largest']):.2f}",
                        f"{float(here['led']) / study.shown(variant):.2f}",
                        f"{float(here['associated']) / study.shown(variant):.2f}",
                        f"{float(here['covered']):.1f}",
                    ]
                )
    return Table(
        "maps",
        "What the maps show, for each frequency of the minority",
        f"Means over {results.sizes['seed']} runs at step {study.figure_read}. Two numbers: "
        f"majority / minority. Covered: of the {study.majority} majority features, how many "
        "dominate a shown neuron.",
        [
            "figure",
            "bias",
            "eps_min",
            "lucky neurons",
            "mixed neurons",
            "mean squared cosine",
            "neurons a feature",
            "largest entry",
            "strongest is majority",
            "carries majority",
            "covered",
        ],
        rows,
    )


def _pair(values: xr.DataArray, form: str) -> str:
    return " / ".join(format(float(values.sel(group=g)), form) for g in ("majority", "minority"))
