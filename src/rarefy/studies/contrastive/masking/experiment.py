"""Networks trained without pruning, then trained on with some neurons left out: the smallest, as
many at random, or those of the rare features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf
from rarefy.measure.alignment import squared_cosines
from rarefy.measure.neurons import aligned_counts
from rarefy.measure.pruning_effect import PruningEffect, share_within, strongest_feature
from rarefy.pruning.masks import keep_largest, neuron_norms
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies.contrastive import setting as lab
from rarefy.train.descent import State
from rarefy.train.neuron_pruning import NeuronPruning

MASKS = ("none", "smallest", "random", "rare")
CONTAINS = ("contains", "lacks")


class ChosenNeurons(NeuronPruning):
    """Leaves neurons out by the rule of each run, (run,), chosen anew at every step: those of the
    smallest norm, as many at random (the same ones at every step), or those most aligned with a
    rare feature. ``rare``: (run, d1, rare features), known once the runs are set up."""

    rare: Tensor

    def __init__(self, kind: Sequence[str], alpha: Tensor, start: int, chance: Tensor) -> None:
        runs, neurons = chance.shape
        self.kind = torch.tensor([MASKS.index(name) for name in kind], device=alpha.device)
        self.chance = chance
        alpha = torch.where(self.kind == MASKS.index("none"), 0.0, alpha)
        codes = rule_codes(["dense"] * runs, alpha.device)
        super().__init__(alpha, torch.full((runs,), start, device=alpha.device), codes, neurons)

    def mask(self, weights: Tensor) -> Tensor:
        norms = neuron_norms(weights)
        rare = -squared_cosines(weights, self.rare).amax(dim=2)  # the most aligned go first
        scores = torch.stack([norms, norms, self.chance, rare], dim=1)  # in the order of MASKS
        chosen = scores[torch.arange(len(scores), device=scores.device), self.kind]
        return keep_largest(chosen, self.count)


@dataclass(frozen=True, kw_only=True)
class MaskingExperiment(lab.ImbalancedExperiment):
    """The networks of 000 Fig. 2-3, from T4 on under Algorithm 1's update with several masks; all
    masks of a seed begin with the same trained network and see the same samples."""

    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "mask", "alpha", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            **lab.TINY,
            "eps_min": (0.3, 0.8),
            "alpha": (0.2,),
            "bias_scale": (0.0,),
            "start": 20,
            "reads": (20, 40),
            "effect_batches": 2,
        },
        "quick": {
            "seeds": 5,
            "eps_min": (0.5,),
            "alpha": (1 / 6,),
            "bias_scale": (1.0,),
            "d1": 120,
            "steps": 400,
            "reads": (25, 158, 400),
        },
        "paper": {},
        "large": {
            "seeds": 20,
            "eps_min": (0.7, 0.9),
            "alpha": (1 / 32,),
            "bias_scale": (1.0,),
            "majority": 28,
            "minority": 4,
            "d1": 256,
            "neurons": 1024,
            "batch": 128,
            "activation": 0.08,
            "start": 1977,
            "steps": 3000,
            "reads": (100, 1977, 3000),
        },
    }

    seeds: Count = 30
    """repeats of each grid point"""
    mask: tuple[Annotated[str, OneOf(MASKS)], ...] = MASKS
    """who is left out: nobody, the smallest, as many at random, or those most aligned with a rare
    feature, which only an oracle knows"""
    alpha: tuple[lab.LeftOut, ...] = (1 / 12, 1 / 6, 1 / 3)
    """share of the neurons left out; 1/6 of 24 is one for each rare feature"""
    eps_min: tuple[lab.Frequency, ...] = (0.2, 0.5, 0.8)
    """frequency of the minority features"""
    bias_scale: tuple[NotNegative, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    sigma: NotNegative = 0.03
    """noise std"""
    start: Count = 158
    """first masked step; 158 is T4 = d^1.99/eta at d = 9"""
    steps: Count = 800
    """training steps"""
    reads: tuple[int, ...] = (25, 100, 158, 250, 400, 600, 800)
    """steps at which the network is read, the first masked one among them"""
    effect_batches: Count = 8
    """batches over which logits with and without the mask are averaged"""

    def check(self) -> None:
        super().check()
        if "none" not in self.mask or len(self.mask) < 2:
            raise bad_value("mask", self.mask, "needs none, which the others are compared with")
        lab.check_alphas((0.0, *self.alpha), self.neurons)
        lab.check_starts((self.start,), self.steps)
        lab.check_reads(self.reads, self.steps)
        if self.start not in self.reads or self.reads[-1] == self.start:
            raise bad_value("reads", self.reads, f"needs start={self.start} and a later step")

    def outputs(self) -> tuple[Output, ...]:
        by_group = ("read", "group")
        return (
            Output("best", by_group, "largest cosine of any neuron, mean over features (Fig. 3)"),
            Output("aligned", by_group, "neurons with cosine >= 0.3, mean over features (Fig. 2)"),
            Output("hit", ("read",), "share of the masked neurons whose feature is rare"),
            Output("fall", ("read", "contains"), "fall of the positive logit (19) by the mask"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        own = {"read": np.array(self.reads), "contains": np.array(CONTAINS)}
        return {**super().coordinates(), **own}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        chance = cells.draws(context).uniform("random mask", (self.neurons,))
        kinds = [str(name) for name in cells.values["mask"]]
        chosen = ChosenNeurons(kinds, cells.column("alpha", context), self.start, chance)
        trial = self.setup(cells, context, pruning=chosen)
        chosen.rare = trial.data.dictionary[:, :, self.majority :]
        trackers = {
            "best": lambda s: self._by_group(trial, s, lambda c: c.amax(dim=1).sqrt()),
            "aligned": lambda s: self._by_group(trial, s, aligned_counts),
            "hit": lambda s: self._hit(trial, chosen, s),
            "fall": lambda s: self._fall(trial, chosen, s),
        }
        return lab.as_arrays({}, trial.train(context, trackers, self.reads))

    def _by_group(self, trial: lab.Trial, state: State, of: Callable[[Tensor], Tensor]) -> Tensor:
        cosines = squared_cosines(state.parameters["weights"], trial.data.dictionary)
        return lab.group_means(of(cosines), self.majority)

    def _hit(self, trial: lab.Trial, chosen: ChosenNeurons, state: State) -> Tensor:
        weights = state.parameters["weights"]
        rare = strongest_feature(weights, trial.data.dictionary) >= self.majority
        return share_within(~chosen.mask(weights), rare).to(weights.dtype)

    def _fall(self, trial: lab.Trial, chosen: ChosenNeurons, state: State) -> Tensor:
        weights = state.parameters["weights"]
        effect = PruningEffect(
            trial.problem,
            state.parameters,
            chosen.mask(weights),
            trial.data,
            trial.draws.spawn(f"effect {state.step}"),
            torch.arange(self.majority, self.d, device=weights.device),
            self.batch,
            self.effect_batches,
        )
        positive = effect.positive_logits()
        return positive[:, :, 0] - positive[:, :, 1]
