"""Where pruning helps: its benefit over start time and share, for three update rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Output, Verdict
from rarefy.core.picture import HeatMap, Picture, Table
from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.neurons import dominant
from rarefy.measure.statistics import judge_difference
from rarefy.pruning.update_rules import UPDATE_RULES, check_rule, rule_codes
from rarefy.studies.contrastive._checks import check_alphas, check_starts
from rarefy.studies.contrastive._contrastive import GROUPS, ImbalancedStudy, group_means
from rarefy.studies.contrastive._pruning_reading import RESTLESS
from rarefy.studies.contrastive._words import bias_name
from rarefy.train.neuron_pruning import NeuronPruning

CLAIMS = {"balance": "P2", "pure": "P3"}
QUANTITIES = {
    "balance": "log of squared weight, rare over frequent features",
    "pure": "pure neurons of a rare feature",
}


@dataclass(frozen=True, kw_only=True)
class ContrastPruningMap(ImbalancedStudy):
    """Every share and start beside the same run without pruning, from random weights."""

    name: ClassVar[str] = "contrast-pruning-map"
    title: ClassVar[str] = "A map of when, and how much, to prune"
    paper_says: ClassVar[str] = (
        "000 proves its gain for pruning that begins at T4 and leaves out no more neurons than "
        "the rare feature has (Theorem 3.2), while Algorithm 1 prunes from the first step and its "
        "experiments do too. The map covers both and what lies between, for Algorithm 1 (dense) "
        "and two other ways to treat what is left out: not updated (masked), set to zero "
        "(project)."
    )
    claims: ClassVar[tuple[str, ...]] = ("P2", "P3")
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "update", "start", "alpha")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
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

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        """The best place of the map is chosen on one half of the seeds, judged on the other; among
        shares the theorem allows, and places at which the runs of the first half come to rest."""
        found = []
        energy = results["energy"].sel(group="majority", drop=True)
        calm = energy <= RESTLESS * energy.sel(alpha=0.0, drop=True)  # False for a lost run
        calm = calm.isel(seed=slice(0, None, 2))
        for bias in results["bias_scale"].values:
            for rule in results["update"].values:
                for quantity, what in QUANTITIES.items():
                    gain = gains(results, quantity).sel(bias_scale=bias, update=rule)
                    allowed = gain["alpha"] * self.d <= self.minority * (1 + 1e-9)
                    rests = calm.sel(bias_scale=bias, update=rule).mean("seed") >= 0.95
                    first = gain.isel(seed=slice(0, None, 2)).mean("seed")
                    chosen = first.where(allowed & rests.sel(alpha=gain["alpha"]))
                    judged = gain.isel(seed=slice(1, None, 2)).isel(
                        chosen.fillna(-np.inf).argmax(...)
                    )
                    if not bool(chosen.notnull().any()):
                        judged = judged * np.nan  # no place may be chosen
                    setting = f"{what}, {rule}, {bias_name(bias)}, {self.setting}"
                    found.append(
                        judge_difference(
                            (CLAIMS[quantity], self.name, scale, f"best of the map: {setting}"),
                            judged.values,
                            "positive",
                            note=f"pruned minus not, at alpha={float(judged['alpha']):g}, "
                            f"start {int(judged['start'])}, chosen on the other half of the "
                            "seeds among alpha up to the rare features' share where training "
                            "comes to rest",
                        )
                    )
        return found

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return [
            self._map(results, quantity, float(bias))
            for quantity in QUANTITIES
            for bias in results["bias_scale"].values
        ]

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

    def tables(self, results: xr.Dataset) -> list[Table]:
        table: list[list[object]] = []
        for bias in results["bias_scale"].values:
            for rule in results["update"].values:
                at = results.sel(bias_scale=bias, update=rule).isel(start=0).mean("seed")
                for alpha in results["alpha"].values:
                    here = at.sel(alpha=alpha)
                    numbers = [
                        f"{float(here[name].sel(group=group)):.3g}"
                        for name in ("energy", "best", "pure")
                        for group in GROUPS
                    ]
                    table.append([bias_name(bias), str(rule), f"{float(alpha):g}", *numbers])
        heads = [f"{name}, {group}" for name in ("energy", "best", "pure") for group in GROUPS]
        return [
            Table(
                "values",
                f"The quantities themselves, pruning from step {int(results['start'][0])}",
                f"Mean over {results.sizes['seed']} runs at step {self.steps}. Energies that "
                "rise far above the unpruned ones mean that training does not come to rest.",
                ["bias", "update", "alpha", *heads],
                table,
            )
        ]


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
