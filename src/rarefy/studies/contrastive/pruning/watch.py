"""What ``contrast-pruning`` sees of a batch of runs at its reads."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.neurons import dominant, lucky
from rarefy.measure.pruning_effect import PruningEffect, mean_where, share_within, strongest_feature
from rarefy.pruning.masks import neuron_norms
from rarefy.studies.contrastive.setting import Trial, group_means
from rarefy.train.descent import State, Tracker

MEASURED = (
    *("energy", "pure", "norm", "pure_pruned", "pruned_rare", "neurons_rare", "lucky_pruned"),
    "positive",
)


class PruningWatch:
    """Measures a state once for all outputs. A neuron belongs to its strongest feature."""

    def __init__(self, trial: Trial, majority: int, eps_min: Tensor, effect_batches: int) -> None:
        self.trial, self.majority, self.effect_batches = trial, majority, effect_batches
        self.atoms = trial.data.dictionary
        along = projections(trial.weights, self.atoms)
        self.lucky = lucky(along, eps_min)[:, :, majority:].any(dim=2)  # eps_max = 1
        self._step, self._seen = -1, dict[str, Tensor]()

    def trackers(self) -> dict[str, Tracker]:
        return {name: partial(self._measured, name) for name in MEASURED}

    def _measured(self, name: str, state: State) -> Tensor:
        if self._step != state.step:
            self._step, self._seen = state.step, self._measure(state)
        return self._seen[name]

    def _measure(self, state: State) -> dict[str, Tensor]:
        experiment, pruning, majority = self.trial.experiment, self.trial.pruning, self.majority
        assert pruning is not None
        weights = state.parameters["weights"]
        dtype = weights.dtype
        kept = pruning.mask(weights)  # whether or not pruning has begun
        effect = PruningEffect(
            self.trial.problem,
            state.parameters,
            kept,
            self.trial.data,
            self.trial.draws.spawn(f"effect {state.step}"),
            torch.arange(majority, experiment.d, device=weights.device),
            experiment.batch,
            self.effect_batches,
        )
        pure = dominant(squared_cosines(weights, self.atoms))
        groups = [pure[:, :, :majority].any(dim=2), pure[:, :, majority:].any(dim=2)]
        norms, rare = neuron_norms(weights), strongest_feature(weights, self.atoms) >= majority
        energy = projections(weights, self.atoms).square().sum(dim=1)
        return {
            "energy": group_means(energy, majority),
            "pure": group_means(pure.sum(dim=1).to(dtype), majority),
            "norm": torch.stack([mean_where(norms, group) for group in groups], dim=1),
            "pure_pruned": share_within(groups[1], ~kept).to(dtype),
            "pruned_rare": share_within(~kept, rare).to(dtype),
            "neurons_rare": rare.to(dtype).mean(dim=1),
            "lucky_pruned": (self.lucky & ~kept).sum(dim=1).to(dtype),
            "positive": effect.positive_logits(),
        }
