"""Maps of ``contrast-pruning-map``."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import HeatMap, Picture
from rarefy.studies.contrastive.pruning_map.claims import QUANTITIES, gains
from rarefy.studies.contrastive.pruning_map.experiment import PruningMapExperiment
from rarefy.studies.contrastive.words import bias_name


def pictures(experiment: PruningMapExperiment, results: xr.Dataset) -> list[Picture]:
    places = product(QUANTITIES, results["bias_scale"].values)
    return [_map(experiment, results, quantity, float(bias)) for quantity, bias in places]


def _map(
    experiment: PruningMapExperiment, results: xr.Dataset, quantity: str, bias: float
) -> Picture:
    """One map per update rule, on one colour scale."""
    what = QUANTITIES[quantity]
    gain = gains(results, quantity).sel(bias_scale=bias)
    error = gain.std("seed", ddof=1) / np.sqrt(results.sizes["seed"])
    panels = []
    for rule in results["update"].values:
        mean, noise = (
            values.sel(update=rule).transpose("start", "alpha").values
            for values in (gain.mean("seed"), error)
        )
        certain = zip(*np.nonzero(np.abs(mean) > 2 * noise), strict=True)
        panels.append(
            HeatMap(
                mean,
                [f"{v:g}" for v in gain["alpha"].values],
                [f"{v:g}" for v in gain["start"].values],
                "share of neurons pruned, alpha",
                "first pruned step",
                f"change of {what}",
                title=str(rule),
                notes=[(i, j, "+" if mean[i, j] > 0 else "-") for i, j in certain],
                signed=True,
            )
        )
    return Picture(
        f"{quantity}-bias-{bias:g}",
        f"What pruning changes, {bias_name(bias)}: {what}",
        f"Pruned minus unpruned run at step {experiment.steps}, mean over {results.sizes['seed']} "
        f"pairs that share weights and data; eps_min = {experiment.eps_min:g}. + and - mark "
        "changes of more than two standard errors. dense: pruned neurons are left out of the "
        "forward pass but updated (Algorithm 1); masked: not updated; project: set to zero, for "
        "good in this model, since a neuron of weight zero has no gradient.",
        panels,
    )
