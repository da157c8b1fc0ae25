"""How strongly each level of frequency is represented, and when two levels meet."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.pruning_effect import share_within, strongest_feature
from rarefy.train.descent import State

NEAR = 0.05
"""Two levels have met when the rarer one is within this share of the other; fixed beforehand."""
NEVER = -1


class LevelWatch:
    """Follows a batch of runs whose features come in levels of equal frequency, the most frequent
    first, ``per_level`` features each.

    ``met``: (run, meeting), steps after ``start`` at which a level first reached the next more
    frequent one, the rarest pair first; -1: not yet.
    """

    def __init__(self, dictionary: Tensor, weights: Tensor, per_level: int, start: int) -> None:
        self.dictionary, self.per_level, self.start = dictionary, per_level, start
        self.levels = dictionary.shape[2] // per_level
        shape = (len(dictionary), self.levels - 1)
        self.met = torch.full(shape, NEVER, dtype=torch.int64, device=dictionary.device)
        if start == 0:  # a watch is called after updates only
            self._look(weights, 0)

    def __call__(self, state: State) -> None:
        """For ``Trial.train(..., watch=)``."""
        if state.step >= self.start:
            self._look(state.parameters["weights"], state.step - self.start)

    def strength(self, weights: Tensor) -> Tensor:
        """sqrt(sum_i <w_i, M_j>^2 / (m/d)), mean over a level's features: (run, level).

        For neurons that carry one feature each, m/d of them per feature, it is the root mean square
        of their coefficients alpha_ij (12); it needs no such premise.
        """
        share = self.dictionary.shape[2] / weights.shape[1]
        energy = projections(weights, self.dictionary).square().sum(dim=1)
        return self._by_level((share * energy).sqrt())

    def composition(self, weights: Tensor, chosen: Tensor) -> Tensor:
        """Share of the ``chosen`` neurons, (run, m), whose strongest feature is of each level:
        (run, level); NaN where none is chosen."""
        level = strongest_feature(weights, self.dictionary) // self.per_level
        parts = [share_within(chosen, level == number) for number in range(self.levels)]
        return torch.stack(parts, dim=1).to(weights.dtype)

    def purity(self, weights: Tensor) -> Tensor:
        """Squared cosine of a neuron with its strongest feature, mean over neurons: (run,)."""
        return squared_cosines(weights, self.dictionary).amax(dim=2).mean(dim=1)

    def _by_level(self, values: Tensor) -> Tensor:
        return values.reshape(len(values), self.levels, self.per_level).mean(dim=2)

    def _look(self, weights: Tensor, step: int) -> None:
        rarest_first = self.strength(weights).flip(1)
        reached = rarest_first[:, :-1] >= (1 - NEAR) * rarest_first[:, 1:]
        self.met = torch.where((self.met == NEVER) & reached, step, self.met)
