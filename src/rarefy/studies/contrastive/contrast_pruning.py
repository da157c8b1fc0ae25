"""Pruning small neurons while training, and what it does to rare features (000 Theorem 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Output, Verdict
from rarefy.core.errors import bad_value
from rarefy.core.picture import Picture, Table
from rarefy.measure.pruning_effect import NETWORKS
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies._apart import simulate_apart
from rarefy.studies.contrastive._checks import (
    check_alphas,
    check_choices,
    check_reads,
    check_starts,
)
from rarefy.studies.contrastive._contrastive import GROUPS, Experiment, ImbalancedStudy
from rarefy.studies.contrastive._pruning_pictures import pruning_pictures, pruning_tables
from rarefy.studies.contrastive._pruning_verdicts import pruning_verdicts
from rarefy.studies.contrastive._pruning_watch import PruningWatch
from rarefy.studies.contrastive._theorem_state import theorem_state
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
class ContrastPruning(ImbalancedStudy):
    """With and without pruning from the same state and the same draws."""

    name: ClassVar[str] = "contrast-pruning"
    title: ClassVar[str] = "Leaving small neurons out while training: when do rare features grow?"
    paper_says: ClassVar[str] = (
        "Neurons of a rare feature are small, so magnitude pruning leaves them out; samples with "
        "that feature then look badly matched (Lemma F.2), weigh more in the update, and since "
        "pruned neurons are still updated (5), they grow: by order alpha/d a step along the rare "
        "feature against alpha/d^2 along others (15)-(16), until their weight no longer depends "
        "on the imbalance (18) and of order m/d neurons are pure in the rare feature (000 "
        "Theorem 3.2)."
    )
    claims: ClassVar[tuple[str, ...]] = ("P1", "P2", "P3", "P4", "P5")
    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "begin", "start", "alpha", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper and needed at scale large"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 3,
            "eps_min": (0.3, 0.6),
            "alpha": (0.0, 0.2),
            "start": (0,),
            "bias_scale": (0.0,),
            "d1": 60,
            "batch": 32,
            "steps": 40,
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

    seeds: int = 25
    alpha: tuple[float, ...] = (0.0, 0.05, 0.1, 0.3)
    """share of the neurons, the smallest, that are left out; 0: no pruning"""
    eps_min: tuple[float, ...] = (0.1, 0.2, 0.4, 0.8)
    """frequency of the minority features"""
    start: tuple[int, ...] = (0, 158)
    """first pruned step; 158 is T4 = d^1.99/eta at d = 9, where the theorem begins"""
    begin: tuple[str, ...] = BEGINS
    """random: Gaussian weights; theorem: the state Theorem 3.1 describes at T4"""
    bias_scale: tuple[float, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    sigma: float = 0.03
    """noise std"""
    neurons: int = 36
    """four a feature in the theorem's state, for which the published 24 leave two or three"""
    steps: int = 800
    reads: tuple[int, ...] = (0, 25, 158, 400, 800)
    """steps at which everything is measured"""
    relax: int = 200
    """gradients on balanced data spent on finding the scale of the theorem's state"""
    effect_batches: int = 16
    """batches over which logits and growth with and without the mask are averaged"""
    moments: int = 18
    """steps at which one minority neuron is followed"""

    def check(self) -> None:
        super().check()
        check_alphas(self.alpha, self.neurons)
        check_starts(self.start, self.steps)
        check_choices("begin", self.begin, BEGINS)
        check_reads(self.reads, self.steps)
        if self.reads[-1] <= max(self.start):
            raise bad_value(
                "reads", self.reads, f"the last must come after start={max(self.start)}"
            )
        if "theorem" in self.begin and self.neurons < self.d:
            raise bad_value("neurons", self.neurons, f"a neuron a feature: at least d={self.d}")
        for name, minimum in (("relax", 1), ("effect_batches", 1), ("moments", 2)):
            if getattr(self, name) < minimum:
                raise bad_value(name, getattr(self, name), f"must be at least {minimum}")

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
        return {
            "read": np.array(self.reads),
            "group": np.array(GROUPS),
            "contains": np.array(CONTAINS),
            "network": np.array(NETWORKS),
            "score": np.array(SCORES),
            "moment": self.moment_steps(),
        }

    def moment_steps(self) -> np.ndarray:
        """Steps of the followed neuron, from 0 to the end, evenly in the square root of time."""
        return np.unique(np.round(np.linspace(0, self.steps**0.5, self.moments) ** 2)).astype(int)

    def cost(self) -> Cost:
        return Cost(2 * self.bytes_per_cell(), self.steps + self.relax)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return simulate_apart(cells, "begin", lambda begin, part: self._runs(begin, part, context))

    def experiment(self, begin: str, cells: Cells, context: Context) -> Experiment:
        """Runs of one beginning, ready to train."""
        one = torch.ones_like(cells.column("eps_min", context))
        eps = self.eps(cells.column("eps_min", context))
        codes = rule_codes(["dense"] * len(cells), context.device)
        start = cells.column("start", context).to(torch.int64)
        pruning = NeuronPruning(cells.column("alpha", context), start, codes, self.neurons)
        experiment = self.setup(
            cells,
            context,
            eps=eps,
            sigma=self.sigma * one,
            bias_scale=cells.column("bias_scale", context),
            pruning=pruning,
        )
        if begin == "theorem":
            parameters = theorem_state(experiment, context, eps, self.relax)
            return replace(experiment, parameters=parameters)
        context.advance(self.relax * len(cells))  # nothing to relax
        return experiment

    def _runs(self, begin: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        experiment = self.experiment(begin, cells, context)
        watch = PruningWatch(self, experiment, cells.column("eps_min", context), begin)
        trajectory = experiment.train(context, watch.trackers(), self.reads, watch.follow)
        trail = watch.trail(trajectory.nonfinite_step)
        found = {**trajectory.records, "neuron": trail, "lucky": watch.lucky.sum(dim=1)}
        arrays = {name: value.cpu().numpy() for name, value in found.items()}
        arrays["nonfinite_step"] = trajectory.nonfinite_step.cpu().numpy()
        return arrays

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return pruning_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return pruning_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return pruning_tables(self, results)
