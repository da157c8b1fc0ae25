"""Where pruning helps: its benefit over start time and share, for three update rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.parameters import Count, NotNegative, OneOf
from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.neurons import dominant
from rarefy.pruning.update_rules import UPDATE_RULES, rule_codes
from rarefy.studies.contrastive import setting as lab
from rarefy.train.neuron_pruning import NeuronPruning


@dataclass(frozen=True, kw_only=True)
class PruningMapExperiment(lab.ImbalancedExperiment):
    """Every share and start beside the same run without pruning, from random weights."""

    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "update", "start", "alpha")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            **lab.TINY,
            "seeds": 4,
            "alpha": (0.0, 0.3),
            "start": (0, 20),
            "bias_scale": (0.0,),
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

    seeds: Count = 50
    """repeats of each grid point"""
    alpha: tuple[lab.LeftOut, ...] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
    """share of the neurons, the smallest, that are left out; 0: no pruning"""
    start: tuple[int, ...] = (0, 5, 10, 20, 40, 80, 158)
    """first pruned step; 158 is T4 = d^1.99/eta at d = 9"""
    update: tuple[Annotated[str, OneOf(UPDATE_RULES)], ...] = UPDATE_RULES
    """what happens to pruned neurons: dense (Algorithm 1), masked, or project"""
    bias_scale: tuple[NotNegative, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    eps_min: lab.Frequency = 0.3
    """frequency of the minority features"""
    sigma: NotNegative = 0.03
    """noise std"""

    def check(self) -> None:
        super().check()
        lab.check_alphas(self.alpha, self.neurons)
        lab.check_starts(self.start, self.steps)

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("energy", ("group",), "sum over neurons of <w,M_j>^2, mean over features"),
            Output("pure", ("group",), "neurons pure in a feature (operational set), mean"),
        )

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        alpha = cells.column("alpha", context)
        rules = rule_codes([str(rule) for rule in cells.values["update"]], context.device)
        start = cells.column("start", context).to(torch.int64)
        pruning = NeuronPruning(alpha, start, rules, self.neurons)
        trial = self.setup(cells, context, pruning=pruning)
        trajectory = trial.train(context, {}, [])
        weights, atoms = trajectory.parameters["weights"], trial.data.dictionary
        found = {
            "energy": projections(weights, atoms).square().sum(dim=1),
            "pure": dominant(squared_cosines(weights, atoms)).sum(dim=1).to(context.dtype),
        }
        lost = (trajectory.nonfinite_step >= 0)[:, None]
        means = {name: lab.group_means(value, self.majority) for name, value in found.items()}
        kept = {name: torch.where(lost, torch.nan, mean) for name, mean in means.items()}
        return lab.as_arrays(kept, trajectory)
