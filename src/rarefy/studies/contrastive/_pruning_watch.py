"""What ``contrast-pruning`` sees of a batch of runs at its reads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.neurons import dominant, lucky
from rarefy.measure.pruning_effect import PruningEffect, mean_where, share_within, strongest_feature
from rarefy.studies.contrastive._contrastive import Experiment, group_means
from rarefy.studies.contrastive._theorem_state import own_feature
from rarefy.train.descent import State, Tracker

if TYPE_CHECKING:
    from rarefy.studies.contrastive.contrast_pruning import ContrastPruning

MEASURED = (
    "energy",
    "weight",
    "pure",
    "extra_growth",
    "pruned_rare",
    "neurons_rare",
    "lucky_pruned",
    "positive",
    "negative",
    "predicted_fall",
    "simple_fall",
    "telling",
    "loss",
)


class PruningWatch:
    """Measures a state once for all outputs, and follows one neuron of a rare feature."""

    def __init__(
        self, study: ContrastPruning, experiment: Experiment, eps_min: Tensor, begin: str
    ) -> None:
        self.study, self.experiment, self.begin = study, experiment, begin
        self.atoms = experiment.data.dictionary
        along = projections(experiment.weights, self.atoms)
        self.lucky = lucky(along, eps_min)[:, :, study.majority :].any(dim=2)  # eps_max = 1
        # to follow: the neuron that begins most aligned with the first rare feature
        self.followed = squared_cosines(experiment.weights, self.atoms)[
            :, :, study.majority
        ].argmax(dim=1)
        self.rare = torch.arange(study.majority, study.d, device=self.atoms.device)
        self.moments = study.moment_steps().tolist()
        self._trail = [self._neuron(experiment.weights)]
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
        atom = self.atoms[:, :, self.study.majority]
        return (weights[rows, self.followed] * atom).sum(dim=1).abs()

    def _measure(self, state: State) -> dict[str, Tensor]:
        study, pruning = self.study, self.experiment.pruning
        assert pruning is not None
        weights = state.parameters["weights"]
        dtype, majority = weights.dtype, study.majority
        along = projections(weights, self.atoms).abs()
        strongest = strongest_feature(weights, self.atoms)
        features = torch.arange(study.d, device=weights.device)
        # in the theorem's state a neuron's feature is given, and (18) is about those neurons
        # whatever becomes of them; elsewhere it is the strongest
        given = own_feature(study.neurons, study.d, weights.device).expand_as(strongest)
        own = (given if self.begin == "theorem" else strongest)[:, :, None] == features
        kept = pruning.mask(weights)  # whether or not pruning has begun
        effect = PruningEffect(
            self.experiment.problem,
            state.parameters,
            kept,
            self.experiment.data,
            self.experiment.draws.spawn(f"effect {state.step}"),
            self.rare,
            study.batch,
            study.effect_batches,
        )
        # (15) speaks of a rare feature's own neurons, (16) of all neurons along the others
        # (15) is about a feature whose neurons are pruned
        touched = (own & ~kept[:, :, None]).any(dim=1)
        grown = torch.where(touched, effect.extra_growth(study.lr, own), torch.nan)
        minority = _group_mean(grown[:, majority:])
        others = _group_mean(effect.extra_growth(study.lr, torch.ones_like(own))[:, :majority])
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
