"""Pruning small neurons while training, and what it does to rare features (000 Theorem 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf
from rarefy.measure.pruning_effect import NETWORKS
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies.contrastive import setting as lab
from rarefy.studies.contrastive.pruning.watch import PruningWatch
from rarefy.studies.contrastive.theorem_state import theorem_state
from rarefy.sweep.batches import split_by_axis
from rarefy.train.neuron_pruning import NeuronPruning

BEGINS = ("random", "theorem")
CONTAINS = ("contains", "lacks")


@dataclass(frozen=True, kw_only=True)
class PruningExperiment(lab.ImbalancedExperiment):
    """With and without pruning from the same state and the same draws."""

    version: ClassVar[int] = 3
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "begin", "start", "alpha", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            **lab.TINY,
            "eps_min": (0.3, 0.6),
            "alpha": (0.0, 0.2),
            "start": (0,),
            "bias_scale": (0.0,),
            "reads": (0, 20, 40),
            "relax": 10,
            "effect_batches": 2,
        },
        "quick": {
            "seeds": 3,
            "eps_min": (0.3, 0.8),
            "d1": 120,
            "steps": 300,
            "reads": (0, 25, 158, 300),
            "effect_batches": 8,
        },
        "paper": {},
        # wide enough for a trained network to have pure neurons of the rare feature
        "large": {
            "seeds": 20,
            "begin": ("random",),
            "eps_min": (0.7, 0.8, 0.9),
            "alpha": (0.0, 2 / 1024, 32 / 1024),
            "start": (1977,),
            "bias_scale": (1.0,),
            "majority": 31,
            "d1": 256,
            "neurons": 1024,
            "batch": 128,
            "activation": 0.08,
            "steps": 3000,
            "reads": (0, 100, 1977, 3000),
            "effect_batches": 8,
        },
    }

    seeds: Count = 25
    """repeats of each grid point"""
    majority: Count = 8
    """features with eps = 1"""
    minority: Count = 1
    """Theorem 3.2 is about one rare feature"""
    alpha: tuple[lab.LeftOut, ...] = (0.0, 2 / 36, 4 / 36)
    """share of the neurons, the smallest, that are left out; 0: no pruning. The first that is not
    0 decides. In the theorem's state 4/36 are all neurons of a feature, the most that it allows"""
    eps_min: tuple[lab.Frequency, ...] = (0.3, 0.5, 0.8)
    """frequency of the minority features; from 0.3 on T5 of App. F.4 is within the steps"""
    start: tuple[int, ...] = (0, 158)
    """first pruned step; 158 is T4 = d^1.99/eta at d = 9, where the theorem begins"""
    begin: tuple[Annotated[str, OneOf(BEGINS)], ...] = BEGINS
    """random: Gaussian weights; theorem: the state Theorem 3.1 describes at T4"""
    bias_scale: tuple[NotNegative, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    sigma: NotNegative = 0.03
    """noise std"""
    neurons: Count = 36
    """four per feature in the theorem's state, for which the published 24 leave two or three"""
    steps: Count = 800
    """training steps"""
    reads: tuple[int, ...] = (0, 25, 158, 400, 800)
    """steps at which everything is measured"""
    relax: Count = 200
    """gradients on balanced data spent on finding the scale of the theorem's state"""
    effect_batches: Count = 16
    """batches over which logits with and without the mask are averaged"""

    def check(self) -> None:
        super().check()
        lab.check_alphas(self.alpha, self.neurons)
        lab.check_starts(self.start, self.steps)
        lab.check_reads(self.reads, self.steps)
        if self.reads[-1] <= max(self.start):
            raise bad_value(
                "reads", self.reads, f"the last must come after start={max(self.start)}"
            )
        if "theorem" in self.begin and self.neurons < self.d:
            raise bad_value("neurons", self.neurons, f"a neuron a feature: at least d={self.d}")

    def outputs(self) -> tuple[Output, ...]:
        by_group = ("read", "group")
        return (
            Output("energy", by_group, "sum over neurons of <w,M_j>^2, mean over features"),
            Output("pure", by_group, "neurons pure in a feature (operational set), mean"),
            Output("norm", by_group, "norm of these pure neurons, mean"),
            Output("pure_pruned", ("read",), "share of the rare pure neurons that is pruned"),
            Output("pruned_rare", ("read",), "share of pruned neurons whose feature is rare"),
            Output("neurons_rare", ("read",), "share of all neurons whose feature is rare"),
            Output("lucky_pruned", ("read",), "rare lucky neurons (27) that are pruned"),
            Output("lucky", (), "the paper's lucky neurons (27) of rare features"),
            Output("positive", ("read", "contains", "network"), "positive logit (19), mean"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        own = {"read": self.reads, "contains": CONTAINS, "network": NETWORKS}
        named = {dim: np.array(values) for dim, values in own.items()}
        return {**named, **super().coordinates()}

    def cost(self) -> Cost:
        return Cost(2 * self.bytes_per_cell(), self.steps + self.relax)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "begin", lambda begin, part: self._runs(begin, part, context))

    def trial(self, begin: str, cells: Cells, context: Context) -> lab.Trial:
        """Runs of one beginning, ready to train."""
        codes = rule_codes(["dense"] * len(cells), context.device)
        start = cells.column("start", context).to(torch.int64)
        pruning = NeuronPruning(cells.column("alpha", context), start, codes, self.neurons)
        trial = self.setup(cells, context, pruning=pruning)
        if begin == "theorem":
            return replace(trial, parameters=theorem_state(trial, context, self.relax))
        context.advance(self.relax * len(cells))  # nothing to relax
        return trial

    def _runs(self, begin: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        trial = self.trial(begin, cells, context)
        eps_min = cells.column("eps_min", context)
        watch = PruningWatch(trial, self.majority, eps_min, self.effect_batches)
        trajectory = trial.train(context, watch.trackers(), self.reads)
        return lab.as_arrays({"lucky": watch.lucky.sum(dim=1)}, trajectory)
