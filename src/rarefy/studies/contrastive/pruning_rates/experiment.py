"""How fast pruning makes a rare feature grow, against d, alpha and eps (000 (15)-(16))."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, NotNegative, Positive
from rarefy.measure.pruning_effect import PruningEffect, strongest_feature
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
from rarefy.studies.contrastive.setting import Frequency
from rarefy.sweep.batches import split_by_axis


@dataclass(frozen=True, kw_only=True)
class PruningRatesExperiment(Experiment):
    """One step with and one without pruning from the theorem's state, one rare feature."""

    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "features", "pruned", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("features", "eps_min")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "features": (9, 12),
            "eps_min": (0.5, 1.0),
            "pruned": (1, 4),
            "d1": 40,
            "batch": 32,
            "relax": 10,
            "effect_batches": 4,
            "bias_scale": (0.0,),
        },
        "quick": {
            "seeds": 4,
            "features": (9, 16, 32),
            "eps_min": (0.3, 0.8),
            "pruned": (1, 2, 4),
            "relax": 100,
            "effect_batches": 60,
            "d1": 64,
        },
        "paper": {},
    }

    seeds: Count = 30
    """repeats of each grid point"""
    features: tuple[Annotated[int, AtLeast(3)], ...] = (9, 16, 32, 64)
    """d, one of them rare; from 3 on log log d is positive"""
    pruned: tuple[Count, ...] = (1, 2, 3, 4)
    """neurons of the rare feature that are left out; alpha = pruned/(copies d)"""
    eps_min: tuple[Frequency, ...] = (0.2, 0.4, 0.8)
    """frequency of the rare feature"""
    bias_scale: tuple[NotNegative, ...] = (0.0, 1.0)
    """bias in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    copies: Count = 4
    """neurons per feature"""
    presence: Positive = 3.43
    """a feature with eps = 1 is present with chance presence log log d/d (0.3 at d = 9)"""
    d1: Count = 128
    """dimension of a token"""
    batch: Annotated[int, AtLeast(2)] = 64
    """pairs per batch"""
    relax: Count = 200
    """gradients on balanced data spent on finding the state's scale"""
    effect_batches: Count = 400
    """batches over which growth is averaged"""

    def check(self) -> None:
        for name in ("features", "pruned"):
            if len(getattr(self, name)) < 2:
                raise bad_value(name, getattr(self, name), "needs two values: a slope is fitted")
        if max(self.features) > self.d1:
            least = f"must be at least the number of features, {max(self.features)}"
            raise bad_value("d1", self.d1, least)
        if max(self.pruned) > self.copies:
            least = f"must be in 1..copies={self.copies}: the rare feature's own"
            raise bad_value("pruned", max(self.pruned), least)
        for d in self.features:
            self.sized(d)

    def sized(self, d: int) -> PruningExperiment:
        """The pruning experiment at one d, with one rare feature."""
        return PruningExperiment.at(
            "paper",
            majority=int(d) - 1,
            minority=1,
            neurons=self.copies * int(d),
            activation=min(1.0, self.presence * math.log(math.log(d)) / d),
            alpha=(0.0, *(count / (self.copies * int(d)) for count in self.pruned)),
            eps_min=self.eps_min,
            bias_scale=self.bias_scale,
            begin=("theorem",),
            start=(0,),
            d1=self.d1,
            batch=self.batch,
            relax=self.relax,
        )

    @property
    def setting(self) -> str:
        return f"d={min(self.features)}..{max(self.features)} {self.copies} neurons a feature"

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("rare", (), "growth a step added along the rare feature, its own neurons"),
            Output("others", (), "growth a step added along other features, all neurons, mean"),
            Output("fall", (), "fall of the positive logit on samples with the rare feature"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

    def cost(self) -> Cost:
        largest = self.sized(max(self.features)).bytes_per_cell()
        return Cost(2 * largest, self.relax + self.effect_batches)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "features", lambda d, part: self._sized(d, part, context))

    def _sized(self, d: int, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        experiment = self.sized(d)
        share = np.asarray(cells.values["pruned"]) / experiment.neurons
        values = {**cells.values, "alpha": share, "start": np.zeros(len(cells))}
        trial = experiment.trial("theorem", Cells(values, cells.keys), context)
        assert trial.pruning is not None
        weights, atoms = trial.weights, trial.data.dictionary
        effect = PruningEffect(
            trial.problem,
            trial.parameters,
            trial.pruning.mask(weights),
            trial.data,
            trial.draws.spawn("effect"),
            torch.tensor([d - 1], device=weights.device),
            experiment.batch,
            self.effect_batches,
            context,
        )
        features = torch.arange(d, device=weights.device)
        own = strongest_feature(weights, atoms)[:, :, None] == features
        positive = effect.positive_logits()[:, 0]
        found = {
            "rare": effect.extra_growth(experiment.lr, own)[:, -1],
            "others": effect.extra_growth(experiment.lr, torch.ones_like(own))[:, :-1].mean(dim=1),
            "fall": positive[:, 0] - positive[:, 1],
        }
        return {name: value.cpu().numpy() for name, value in found.items()}
