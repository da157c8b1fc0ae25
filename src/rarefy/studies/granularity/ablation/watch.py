"""What becomes of detectors in fine-tuning, as ``granularity-ablation`` reads it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.measure.detectors import Roles, pooled, response, responses, roles
from rarefy.studies.granularity.trial import Trial
from rarefy.train.descent import State

SAME = 1e-6
"""Rounding of a weight that nothing has moved, over the largest weight."""
DETECTORS = {
    "own_weight": "<w, v> of the neurons of S(v), v a subclass's feature, own output, mean",
    "own_response": "response of its own output to a subclass's feature, mean",
    "common_weight": "<w, v> of the neurons of S(v), v a side's common feature, its outputs, mean",
    "common_response": "response of a side's outputs to its common feature, mean",
}


@dataclass(frozen=True)
class Detectors:
    """sets: neurons that a feature wakes at the start, S(v) of 004 Def. C.1, 3 and G.1, 3 without
    its margin, (run, output, m, feature). (Those that nothing else wakes, S*(v), are rare at such
    sizes.) Subclass features are looked at in their own output, common features in all outputs of
    their side."""

    sets: Tensor
    role: Roles

    @classmethod
    def of(cls, trial: Trial) -> Detectors:
        initial, features = trial.initial, 2 + trial.data.subclasses
        awake = responses(initial["weights"], initial["bias"], features) > 0
        return cls(awake, roles(trial.labels))

    def look(self, state: State) -> Tensor:
        """A tracker of ``DETECTORS``, (run, measure)."""
        weights, bias = state.parameters["weights"], state.parameters["bias"]
        features = self.sets.shape[3]
        along = (weights[..., :features] * self.sets).sum(dim=2) / self.sets.sum(dim=2)
        answer = response(weights, bias, features)
        found = [
            pooled(values, where)
            for where in (self.role.subclass, self.role.common)
            for values in (along, answer)
        ]
        return torch.stack(found, dim=1)

    def kept(self, before: dict[str, Tensor], after: dict[str, Tensor]) -> Tensor:
        """Share of the detectors of subclass features whose <w, v> is not smaller than before,
        (run,). Only those that were still awake then count."""
        features = self.sets.shape[3]
        old, new = (state["weights"][..., :features] for state in (before, after))
        own = self.role.subclass.to(old.device)[None, :, None]
        awake = self.sets & own & (old + before["bias"][..., None] > 0)
        slack = SAME * old.abs().amax(dim=(1, 2, 3), keepdim=True)
        total = awake.sum(dim=(1, 2, 3))
        return ((new >= old - slack) & awake).sum(dim=(1, 2, 3)) / total
