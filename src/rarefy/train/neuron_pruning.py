"""Magnitude pruning of whole neurons while training (000 Algorithm 1, line 4), many runs at once.

At every step from a run's ``start`` on, the share ``alpha`` of its neurons with the smallest norm
is left out of the forward pass; what becomes of them is the update rule's affair. ``kept`` is the
mask of the step in progress, (run, m).
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.pruning.masks import keep_largest, kept_count, neuron_norms
from rarefy.pruning.update_rules import UPDATE_RULES, after_step, before_step

NEVER = -1
"""A start that never comes."""


def check_alpha(alpha: float, neurons: int | None = None) -> None:
    """Refuse a share that is none, and one above 0 that leaves out none of ``neurons``."""
    if not 0 <= alpha < 1:
        raise bad_value("alpha", alpha, "the share of neurons left out must be in [0, 1)")
    if neurons is None or alpha == 0:
        return
    if int(kept_count(torch.tensor(alpha, dtype=torch.float64), neurons)) == neurons:
        raise bad_value("alpha", alpha, f"leaves out none of the {neurons} neurons; must be more")


class NeuronPruning:
    """The neurons of smallest norm are left out while training (Liao et al., Algorithm 1).

    Arguments:
        alpha: (run,), the share that is left out.
        start: (run,), the first pruned step; -1: never.
        rule: (run,), what becomes of them: 0 dense (updated too), 1 masked (wait), 2 project (set
            to zero).
        neurons: how many there are.

    Attributes:
        kept: (run, m), the mask of the step in progress.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> weights = rarefy.lab.initial_weights(draws, 24, 100, draws.per_run(1e-3))
        >>> nothing = torch.zeros(3, dtype=torch.int64)
        >>> pruning = rarefy.lab.NeuronPruning(draws.per_run(0.5), nothing, nothing, neurons=24)
        >>> pruning.mask(weights).sum(dim=1).tolist()
        [12, 12, 12]
    """

    def __init__(self, alpha: Tensor, start: Tensor, rule: Tensor, neurons: int) -> None:
        for value in alpha.flatten().tolist():
            check_alpha(value)
        self.start, self.rule = start, rule
        self.count = kept_count(alpha, neurons)
        self.kept = torch.ones(len(alpha), neurons, dtype=torch.bool, device=alpha.device)
        self._ever = bool((self.count < neurons).any())

    @property
    def trained(self) -> Tensor:
        """Who is updated in the step in progress: (run, m)."""
        return self.kept | (self.rule != UPDATE_RULES.index("masked"))[:, None]

    def mask(self, weights: Tensor) -> Tensor:
        """Who would be kept of these weights if their run were being pruned: (run, m)."""
        return keep_largest(neuron_norms(weights), self.count)

    def before(self, step: int, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """Choose the mask of this step, and the weights it begins with."""
        if not self._ever:
            return parameters
        weights = parameters["weights"]
        running = (self.start != NEVER) & (self.start <= step)
        self.kept = self.mask(weights) | ~running[:, None]
        return {**parameters, "weights": before_step(weights, self.kept, self.rule)}

    def after(self, before: dict[str, Tensor], moved: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the optimiser may not move stays."""
        if not self._ever:
            return moved
        weights = after_step(before["weights"], moved["weights"], self.kept, self.rule)
        return {**moved, "weights": weights}
