"""Pruning small neurons while training, and what it does to rare features (000 Theorem 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, NotNegative, OneOf
from rarefy.measure.pruning_effect import NETWORKS
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies.contrastive import setting as lab
from rarefy.studies.contrastive.pruning.watch import PruningWatch
from rarefy.studies.contrastive.theorem_state import theorem_state
from rarefy.sweep.batches import split_by_axis
from rarefy.train.neuron_pruning import NeuronPruning

BEGINS = ("random", "theorem")
CONTAINS = ("contains", "lacks")
SCORES = (
    "share carried by pruned neurons",
    "fall of the logit",
    "fall, random neurons left out",
    "size of the embedding",
)
"""Label-free scores of a sample; the last two are controls."""


@dataclass(frozen=True, kw_only=True)
class PruningExperiment(lab.ImbalancedExperiment):
    """With and without pruning from the same state and the same draws."""

    version: ClassVar[int] = 2
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
            "eps_min": (0.2, 0.4, 0.8),
            "alpha": (0.0, 0.05, 0.3),
            "start": (0,),
            "d1": 120,
            "steps": 300,
            "reads": (0, 25, 158, 300),
            "effect_batches": 8,
        },
        "paper": {},
        "large": {
            "seeds": 6,
            "eps_min": (0.7, 0.8, 0.9),
            "alpha": (0.0, 0.01, 0.03, 0.1),
            "start": (0, 1977),
            "majority": 28,
            "minority": 4,
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
    alpha: tuple[lab.LeftOut, ...] = (0.0, 0.05, 0.1, 0.3)
    """share of the neurons, the smallest, that are left out; 0: no pruning"""
    eps_min: tuple[lab.Frequency, ...] = (0.1, 0.2, 0.4, 0.8)
    """frequency of the minority features"""
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
    """batches over which logits and growth with and without the mask are averaged"""
    moments: Annotated[int, AtLeast(2)] = 18
    """steps at which one minority neuron is followed"""

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
        by_group, by_kind = ("read", "group"), ("read", "contains", "network")
        return (
            Output("energy", by_group, "sum over neurons of <w,M_j>^2, mean over features"),
            Output("weight", by_group, "|<w_i,M_j>| of a feature's own neurons, mean"),
            Output("pure", by_group, "neurons pure in a feature (operational set), mean"),
            Output("extra_growth", by_group, "growth a step that leaving neurons out adds"),
            Output("pruned_rare", ("read",), "share of pruned neurons whose feature is rare"),
            Output("neurons_rare", ("read",), "share of all neurons whose feature is rare"),
            Output("lucky_pruned", ("read",), "rare lucky neurons (27) that are pruned"),
            Output("lucky", (), "the paper's lucky neurons (27) of rare features"),
            Output("positive", by_kind, "positive logit (19), mean over samples"),
            Output("negative", by_kind, "negative logit (20) of one negative, mean"),
            Output("predicted_fall", ("read",), "fall of (19) by (211), rare-feature samples"),
            Output("simple_fall", ("read",), "the same without negatives, (213)"),
            Output("telling", ("read", "score"), "AUROC for 'contains a rare feature'"),
            Output("loss", ("read",), "contrastive loss of the last batch", "nats"),
            Output("neuron", ("moment",), "|<w_i,M_j>| of one neuron of a rare feature"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        names = {"contains": CONTAINS, "network": NETWORKS, "score": SCORES}
        named = {dim: np.array(values) for dim, values in names.items()}
        own = {**super().coordinates(), **named, "moment": self.moment_steps()}
        return {"read": np.array(self.reads), **own}

    def moment_steps(self) -> np.ndarray:
        """Steps of the followed neuron, from 0 to the end, evenly in the square root of time."""
        return np.unique(np.round(np.linspace(0, self.steps**0.5, self.moments) ** 2)).astype(int)

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
        watch = PruningWatch(
            trial,
            self.majority,
            cells.column("eps_min", context),
            self.moment_steps().tolist(),
            self.effect_batches,
            given_features=begin == "theorem",
        )
        trajectory = trial.train(context, watch.trackers(), self.reads, watch.follow)
        trail = watch.trail(trajectory.nonfinite_step)
        return lab.as_arrays({"neuron": trail, "lucky": watch.lucky.sum(dim=1)}, trajectory)
