"""Where pruning helps: its benefit over start time and share, for three update rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.picture import HeatMap, Picture
from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.neurons import dominant
from rarefy.pruning.updates import UPDATE_RULES, check_rule, rule_codes
from rarefy.studies.contrastive.checks import check_alphas, check_starts
from rarefy.studies.contrastive.setting import GROUPS, ImbalancedExperiment, group_means
from rarefy.studies.contrastive.words import bias_name
from rarefy.train.neuron_pruning import NeuronPruning

CLAIMS = {"balance": "P2", "pure": "P3"}
QUANTITIES = {
    "balance": "log of squared weight, rare over frequent features",
    "pure": "pure neurons of a rare feature",
}


@dataclass(frozen=True, kw_only=True)
class PruningMapExperiment(ImbalancedExperiment):
    """Every share and start beside the same run without pruning, from random weights."""

    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "update", "start", "alpha")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 4,
            "alpha": (0.0, 0.3),
            "start": (0, 20),
            "bias_scale": (0.0,),
            "d1": 60,
            "batch": 32,
            "steps": 40,
        },
        "quick": {
            "seeds": 4,
            "alpha": (0.0, 0.1, 0.3),
            "start": (0, 20, 80),
            "bias_scale": (0.0,),
            "d1": 120,
            "steps": 158,
        },
        "paper": {},
    }

    seeds: int = 50
    alpha: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
    """share of the neurons, the smallest, that are left out; 0: no pruning"""
    start: tuple[int, ...] = (0, 5, 10, 20, 40, 80, 158)
    """first pruned step; 158 is T4 = d^1.99/eta at d = 9"""
    update: tuple[str, ...] = UPDATE_RULES
    """what happens to pruned neurons: dense (Algorithm 1), masked, or project"""
    bias_scale: tuple[float, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    eps_min: float = 0.3
    """frequency of the minority features"""
    sigma: float = 0.03
    """noise std"""
    steps: int = 400

    def check(self) -> None:
        super().check()
        check_alphas(self.alpha, self.neurons)
        check_starts(self.start, self.steps)
        for rule in self.update:
            check_rule(rule)

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("energy", ("group",), "sum over neurons of <w,M_j>^2, mean over features"),
            Output("pure", ("group",), "neurons pure in a feature (operational set), mean"),
            Output("best", ("group",), "largest cosine of any neuron, mean over features"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"group": np.array(GROUPS)}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        alpha = cells.column("alpha", context)
        one = torch.ones_like(alpha)
        rules = rule_codes([str(rule) for rule in cells.values["update"]], context.device)
        start = cells.column("start", context).to(torch.int64)
        experiment = self.setup(
            cells,
            context,
            eps=self.eps(self.eps_min * one),
            sigma=self.sigma * one,
            bias_scale=cells.column("bias_scale", context),
            pruning=NeuronPruning(alpha, start, rules, self.neurons),
        )
        trajectory = experiment.train(context, {}, [])
        weights, atoms = trajectory.parameters["weights"], experiment.data.dictionary
        cosines = squared_cosines(weights, atoms)
        found = {
            "energy": projections(weights, atoms).square().sum(dim=1),
            "pure": dominant(cosines).sum(dim=1).to(context.dtype),
            "best": cosines.amax(dim=1).sqrt(),
        }
        lost = (trajectory.nonfinite_step >= 0)[:, None]
        arrays = {
            name: torch.where(lost, torch.nan, group_means(value, self.majority)).cpu().numpy()
            for name, value in found.items()
        }
        arrays["nonfinite_step"] = trajectory.nonfinite_step.cpu().numpy()
        return arrays

    def _map(self, results: xr.Dataset, quantity: str, bias: float) -> Picture:
        """One map an update rule, on one colour scale."""
        what = QUANTITIES[quantity]
        gain = gains(results, quantity).sel(bias_scale=bias)
        error = gain.std("seed", ddof=1) / np.sqrt(results.sizes["seed"])
        panels = []
        for rule in results["update"].values:
            mean = gain.mean("seed").sel(update=rule).transpose("start", "alpha").values
            noise = error.sel(update=rule).transpose("start", "alpha").values
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
            f"Pruned minus unpruned run at step {self.steps}, mean over {results.sizes['seed']} "
            f"pairs that share weights and data; eps_min = {self.eps_min:g}. + and - mark changes "
            "of more than two standard errors. dense: pruned neurons are left out of the forward "
            "pass but updated (Algorithm 1); masked: not updated; project: set to zero, for good "
            "in this model, since a neuron of weight zero has no gradient.",
            panels,
        )


def gains(results: xr.Dataset, quantity: str) -> xr.DataArray:
    """Pruned minus unpruned for every alpha > 0, paired by seed."""
    if quantity == "balance":
        energy = results["energy"]
        ratio = energy.sel(group="minority") / energy.sel(group="majority")
        value = xr.apply_ufunc(np.log, ratio.where(ratio > 0))
    else:
        value = results[quantity].sel(group="minority")
    alphas = results["alpha"].values[results["alpha"].values > 0]
    return value.sel(alpha=alphas) - value.sel(alpha=0.0).drop_vars("alpha")
