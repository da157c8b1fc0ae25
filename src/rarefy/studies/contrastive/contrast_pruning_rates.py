"""How fast pruning makes a rare feature grow, against d, alpha and eps (000 (15)-(16))."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Output, Study, Verdict
from rarefy.core.errors import bad_value
from rarefy.core.picture import Picture, Table
from rarefy.measure.pruning_effect import PruningEffect, strongest_feature
from rarefy.studies._apart import simulate_apart
from rarefy.studies.contrastive._rates_pictures import rates_pictures, rates_tables
from rarefy.studies.contrastive._rates_verdicts import rates_verdicts
from rarefy.studies.contrastive.contrast_pruning import ContrastPruning


@dataclass(frozen=True, kw_only=True)
class ContrastPruningRates(Study):
    """One step with and one without pruning from the theorem's state, one rare feature."""

    name: ClassVar[str] = "contrast-pruning-rates"
    title: ClassVar[str] = "How much one pruned step adds to a rare feature, and to the others"
    lab: ClassVar[str] = "contrastive"
    paper_says: ClassVar[str] = (
        "With a share alpha of the neurons pruned, all of them the rare feature's, its neurons "
        "grow along it by at least of order eta eps^2 alpha C_z log log d / d more a step (15), "
        "and all neurons along any other feature by at most of order eta eps^3 alpha C_z log log "
        "d / d^2 (16): d/eps times less. The constants are not stated; here C_z log log d / d is "
        "the growth of stage 1, nothing is fitted."
    )
    claims: ClassVar[tuple[str, ...]] = ("P1",)
    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "features", "pruned", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("features", "eps_min")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
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

    def sized(self, d: int) -> ContrastPruning:
        """The pruning study at one d, with one rare feature."""
        study = ContrastPruning.at(
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
        assert isinstance(study, ContrastPruning)
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
        return simulate_apart(cells, "features", lambda d, part: self._sized(d, part, context))

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

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return rates_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return rates_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return rates_tables(self, results)
