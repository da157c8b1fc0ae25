"""Pruning with three frequencies: the rarest level first? (000 Theorem 3.2, Remark 1)"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf, Whole
from rarefy.measure.levels import LevelWatch
from rarefy.pruning.update_rules import UPDATE_RULES, rule_codes
from rarefy.studies.contrastive.setting import ContrastiveExperiment, Frequency, LeftOut, as_arrays
from rarefy.studies.contrastive.theorem_state import theorem_state
from rarefy.sweep.batches import split_by_axis
from rarefy.train.neuron_pruning import NeuronPruning

BEGINS = ("theorem", "random")


@dataclass(frozen=True, kw_only=True)
class CascadeExperiment(ContrastiveExperiment):
    """Levels of frequency under pruning and, from the same draws, without it."""

    axes: ClassVar[tuple[str, ...]] = ("begin", "bias_scale", "alpha")
    # no random axis: a pruned run and its unpruned twin see the same samples
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 3,
            "alpha": (0.0, 0.2),
            "per_level": 2,
            "neurons": 18,
            "d1": 40,
            "batch": 32,
            "before": 15,
            "steps": 45,
            "reads": (0, 5, 10, 15, 20, 25, 30),
        },
        "quick": {
            "seeds": 6,
            "d1": 100,
            "steps": 358,
            "reads": (*range(0, 100, 5), *range(100, 201, 20)),
        },
        "paper": {},
    }

    begin: tuple[Annotated[str, OneOf(BEGINS)], ...] = BEGINS
    """theorem: the state Theorem 3.1 describes at T4, made by hand; random: ordinary training from
    Gaussian weights for as many steps as ``before`` says"""
    bias_scale: tuple[NotNegative, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    alpha: tuple[LeftOut, ...] = (0.0, 0.1, 0.2, 0.3)
    """share of the neurons, the smallest, left out of each forward pass; 0: no pruning. From about
    0.4 on nothing comes to rest: kept and pruned neurons outgrow each other for ever. From the
    theorem's state without a bias this happens at 0.2 already, where whole features are left out"""
    levels: tuple[Frequency, ...] = (1.0, 0.5, 0.25)
    """frequencies, the most frequent first"""
    per_level: Count = 3
    """features of each frequency"""
    sigma: NotNegative = 0.03
    """noise std"""
    neurons: Count = 36
    """four per feature"""
    update: Annotated[str, OneOf(UPDATE_RULES)] = "dense"
    """what happens to pruned neurons: dense (Algorithm 1), masked, or project"""
    before: Whole = 158
    """unpruned steps before the clock starts: T4 = d^1.99/eta at d = 9. theorem: on balanced data,
    to find the scale at which the network rests; random: on the data themselves"""
    steps: Count = 958
    """all steps, those before the clock starts included"""
    reads: tuple[int, ...] = (*range(0, 100, 5), *range(100, 200, 20), 200, 250, 300, 400, 600, 800)
    """steps after pruning has begun at which the levels are recorded"""
    figure_alpha: float = 0.2
    """the pruned share shown in the pictures"""

    @property
    def d(self) -> int:
        return len(self.levels) * self.per_level

    @property
    def horizon(self) -> int:
        """Steps that are watched, counted from the beginning of pruning."""
        return self.steps - self.before

    def check(self) -> None:
        super().check()
        if len(self.levels) < 2 or not all(a > b for a, b in pairwise(self.levels)):
            raise bad_value("levels", self.levels, "at least two, each rarer than the one before")
        if 0.0 not in self.alpha or self.figure_alpha not in self.alpha:
            least = f"needs 0, the unpruned twin, and figure_alpha={self.figure_alpha:g}"
            raise bad_value("alpha", self.alpha, least)
        if self.neurons < self.d:
            raise bad_value("neurons", self.neurons, f"a neuron a feature: at least {self.d}")
        if self.before >= self.steps:
            raise bad_value("before", self.before, f"must be in 0..steps-1={self.steps - 1}")
        rising = all(a < b for a, b in pairwise(self.reads))
        if len(self.reads) < 2 or not rising or self.reads[0] != 0:
            raise bad_value("reads", self.reads, "rising steps, the first of them 0")
        if self.reads[-1] > self.horizon:
            raise bad_value("reads", self.reads[-1], f"at most steps - before = {self.horizon}")

    def eps(self, cells: Cells, context: Context) -> Tensor:
        levels = torch.tensor(self.levels, dtype=context.dtype, device=context.device)
        return levels.repeat_interleave(self.per_level).expand(len(cells), -1)

    def outputs(self) -> tuple[Output, ...]:
        by_level, share = ("read", "level"), "share of the pruned neurons whose strongest feature"
        strength = "sqrt(sum_i <w_i,M_j>^2/(m/d)), mean over the features of a frequency"
        purity = "squared cosine of a neuron with its strongest feature, mean over neurons"
        met = "steps of pruning until a level is within 5 % of the next; -1: not reached"
        return (
            Output("strength", by_level, strength),
            Output("pruned", by_level, f"{share} has this frequency"),
            Output("purity", ("read",), purity),
            Output("met", ("meeting",), met, "steps"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        meetings = [f"{rare:g} meets {next_:g}" for rare, next_ in pairwise(self.levels[::-1])]
        own = {"read": self.reads, "level": self.levels, "meeting": meetings}
        return {name: np.array(values) for name, values in own.items()}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "begin", lambda begin, part: self._runs(begin, part, context))

    def _runs(self, begin: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        by_hand = begin == "theorem"
        start = 0 if by_hand else self.before  # the clock of training starts after relaxing
        pruning = NeuronPruning(
            cells.column("alpha", context),
            torch.full((len(cells),), start, device=context.device),
            rule_codes([self.update] * len(cells), context.device),
            self.neurons,
        )
        trial = self.setup(cells, context, pruning=pruning)
        if by_hand:
            trial = replace(
                trial,
                experiment=replace(self, steps=self.horizon, before=0),
                parameters=theorem_state(trial, context, self.before),
            )
        watch = LevelWatch(trial.data.dictionary, trial.weights, self.per_level, start)
        trajectory = trial.train(
            context,
            {
                "strength": lambda s: watch.strength(s.parameters["weights"]),
                "pruned": lambda s: watch.composition(
                    s.parameters["weights"], ~pruning.mask(s.parameters["weights"])
                ),
                "purity": lambda s: watch.purity(s.parameters["weights"]),
            },
            [start + read for read in self.reads],
            watch,
        )
        return as_arrays({"met": watch.met}, trajectory)
