"""How fast pruning makes a rare feature grow, against d, alpha and eps (000 (15)-(16))."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.measure.pruned import PruningEffect, strongest_feature
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
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

    seeds: int = 30
    features: tuple[int, ...] = (9, 16, 32, 64)
    """d, one of them rare"""
    pruned: tuple[int, ...] = (1, 2, 3, 4)
    """neurons of the rare feature that are left out; alpha = pruned/(copies d)"""
    eps_min: tuple[float, ...] = (0.2, 0.4, 0.8)
    """frequency of the rare feature"""
    bias_scale: tuple[float, ...] = (0.0, 1.0)
    """bias in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    copies: int = 4
    """neurons a feature"""
    presence: float = 3.43
    """a feature with eps = 1 is present with chance presence log log d/d (0.3 at d = 9)"""
    d1: int = 128
    """dimension of a token"""
    batch: int = 64
    """pairs a batch"""
    relax: int = 200
    """gradients on balanced data spent on finding the state's scale"""
    effect_batches: int = 400
    """batches over which growth is averaged"""

    def check(self) -> None:
        super().check()
        for d in self.features:
            if d < 3:
                raise bad_value("features", d, "must be at least 3: log log d must be positive")
            if d > self.d1:
                raise bad_value("d1", self.d1, f"must be at least the number of features, {d}")
        for count in self.pruned:
            if not 1 <= count <= self.copies:
                raise bad_value(
                    "pruned", count, f"must be in 1..copies={self.copies}: the rare feature's own"
                )
        if len(self.features) < 2 or len(self.pruned) < 2:
            short = "features" if len(self.features) < 2 else "pruned"
            raise bad_value(short, getattr(self, short), "needs two values: a slope is fitted")
        if self.effect_batches < 1:
            raise bad_value("effect_batches", self.effect_batches, "must be at least 1")
        if not 0 < self.presence < math.inf:
            raise bad_value("presence", self.presence, "must be positive and finite")
        for d in self.features:
            self.sized(d)

    def sized(self, d: int) -> PruningExperiment:
        """The pruning study at one d, with one rare feature."""
        study = PruningExperiment.at(
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
        assert isinstance(study, PruningExperiment)
        return study

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
        study = self.sized(d)
        share = np.asarray(cells.values["pruned"]) / study.neurons
        values = {**cells.values, "alpha": share, "start": np.zeros(len(cells))}
        experiment = study.experiment("theorem", Cells(values, cells.keys), context)
        assert experiment.pruning is not None
        weights, atoms = experiment.weights, experiment.data.dictionary
        effect = PruningEffect(
            experiment.problem,
            experiment.parameters,
            experiment.pruning.mask(weights),
            experiment.data,
            experiment.draws.spawn("effect"),
            torch.tensor([d - 1], device=weights.device),
            study.batch,
            self.effect_batches,
            context,
        )
        own = strongest_feature(weights, atoms)[:, :, None] == torch.arange(
            d, device=weights.device
        )
        positive = effect.positive_logits()[:, 0]
        found = {
            "rare": effect.extra_growth(study.lr, own)[:, -1],
            "others": effect.extra_growth(study.lr, torch.ones_like(own))[:, :-1].mean(dim=1),
            "fall": positive[:, 0] - positive[:, 1],
        }
        return {name: value.cpu().numpy() for name, value in found.items()}
