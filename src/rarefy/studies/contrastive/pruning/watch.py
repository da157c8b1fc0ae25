"""What ``contrast-pruning`` sees of a batch of runs at its reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.neurons import dominant, lucky
from rarefy.measure.pruning_effect import PruningEffect, mean_where, share_within, strongest_feature
from rarefy.studies.contrastive.setting import Trial, group_means
from rarefy.studies.contrastive.theorem_state import own_feature
from rarefy.train.descent import State, Tracker

MEASURED = (
    *("energy", "weight", "pure", "extra_growth", "pruned_rare", "neurons_rare", "lucky_pruned"),
    *("positive", "negative", "predicted_fall", "simple_fall", "telling", "loss"),
)


class PruningWatch:
    """Measures a state once for all outputs, and follows one neuron of a rare feature.

    ``moments``: steps at which it is followed; ``given_features``: neurons have the features of the
    theorem's state, and (18) is about those neurons whatever becomes of them; else a neuron has its
    strongest feature.
    """

    def __init__(
        self,
        trial: Trial,
        majority: int,
        eps_min: Tensor,
        moments: Sequence[int],
        effect_batches: int,
        given_features: bool,
    ) -> None:
        self.trial, self.majority, self.moments = trial, majority, list(moments)
        self.effect_batches, self.given_features = effect_batches, given_features
        self.atoms = trial.data.dictionary
        along = projections(trial.weights, self.atoms)
        self.lucky = lucky(along, eps_min)[:, :, majority:].any(dim=2)  # eps_max = 1
        # to follow: the neuron that begins most aligned with the first rare feature
        cosines = squared_cosines(trial.weights, self.atoms)[:, :, majority]
        self.followed = cosines.argmax(dim=1)
        self.rare = torch.arange(majority, self.atoms.shape[2], device=self.atoms.device)
        self._trail = [self._neuron(trial.weights)]
        self._step, self._seen = -1, dict[str, Tensor]()

    def trackers(self) -> dict[str, Tracker]:
        return {name: partial(self._measured, name) for name in MEASURED}

    def _measured(self, name: str, state: State) -> Tensor:
        if self._step != state.step:
            self._step, self._seen = state.step, self._measure(state)
        return self._seen[name]

    def follow(self, state: State) -> None:
        """Called after every update."""
        if state.step in self.moments:
            self._trail.append(self._neuron(state.parameters["weights"]))

    def trail(self, nonfinite_step: Tensor) -> Tensor:
        """|<w_i, M_j>| of the followed neuron: (run, moment); NaN once a run is lost."""
        trail = torch.stack(self._trail, dim=1)
        moment = torch.tensor(self.moments, device=trail.device)
        lost = (nonfinite_step >= 0)[:, None] & (moment > nonfinite_step[:, None])
        return torch.where(lost, torch.nan, trail)

    def _neuron(self, weights: Tensor) -> Tensor:
        rows = torch.arange(len(weights), device=weights.device)
        atom = self.atoms[:, :, self.majority]
        return (weights[rows, self.followed] * atom).sum(dim=1).abs()

    def _measure(self, state: State) -> dict[str, Tensor]:
        experiment, pruning = self.trial.experiment, self.trial.pruning
        assert pruning is not None
        weights = state.parameters["weights"]
        dtype, majority = weights.dtype, self.majority
        along = projections(weights, self.atoms).abs()
        strongest = strongest_feature(weights, self.atoms)
        features = torch.arange(experiment.d, device=weights.device)
        given = own_feature(experiment.neurons, experiment.d, weights.device).expand_as(strongest)
        own = (given if self.given_features else strongest)[:, :, None] == features
        kept = pruning.mask(weights)  # whether or not pruning has begun
        effect = PruningEffect(
            self.trial.problem,
            state.parameters,
            kept,
            self.trial.data,
            self.trial.draws.spawn(f"effect {state.step}"),
            self.rare,
            experiment.batch,
            self.effect_batches,
        )
        # (15) speaks of a rare feature's own neurons, (16) of all neurons along the others
        # (15) is about a feature whose neurons are pruned
        touched = (own & ~kept[:, :, None]).any(dim=1)
        grown = torch.where(touched, effect.extra_growth(experiment.lr, own), torch.nan)
        minority = _group_mean(grown[:, majority:])
        others = _group_mean(effect.extra_growth(experiment.lr, torch.ones_like(own))[:, :majority])
        weight = mean_where(along.transpose(1, 2), own.transpose(1, 2))
        pure = dominant(squared_cosines(weights, self.atoms)).sum(dim=1).to(dtype)
        rare_neuron = strongest >= majority
        return {
            "energy": group_means(along.square().sum(dim=1), majority),
            "weight": torch.stack(
                [_group_mean(weight[:, :majority]), _group_mean(weight[:, majority:])], dim=1
            ),
            "pure": group_means(pure, majority),
            "extra_growth": torch.stack([others, minority], dim=1),
            "pruned_rare": share_within(~kept, rare_neuron),
            "neurons_rare": rare_neuron.to(dtype).mean(dim=1),
            "lucky_pruned": (self.lucky & ~kept).sum(dim=1).to(dtype),
            "positive": effect.positive_logits(),
            "negative": effect.negative_logits(),
            "predicted_fall": effect.first_order_fall()[:, 0],
            "simple_fall": effect.fall_without_negatives()[:, 0],
            "telling": effect.auroc_scores().to(dtype),
            "loss": state.loss.to(dtype),
        }


def _group_mean(values: Tensor) -> Tensor:
    """Mean over the features that have a value; NaN if none has."""
    return mean_where(values.nan_to_num(), ~values.isnan())
