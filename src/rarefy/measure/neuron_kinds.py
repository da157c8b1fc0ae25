"""What kind of neuron is this? Named by rule from its squared cosines with the features.

000 App. A.2 names its examples by eye: a *lucky* neuron has one strong alignment, a *mixed* one
several moderate ones. Here a neuron is

    pure     one feature dominates it (``neurons.dominant``: squared cosine at least 0.09, four
             times the second largest)
    mixed    not pure, and at least two features carry a tenth of its squared norm each
             (``neurons.carried``); the paper's example has 0.13, 0.18 and 0.15
    weak     neither: most of its norm lies outside the features, or one feature leads unclearly
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.measure.neurons import carried, dominant

KINDS = ("pure", "mixed", "weak")
PURE, MIXED, WEAK = range(3)
LUCKY_LEVEL = 0.3
"""Squared cosine of the lucky neuron that 000 App. A.2 shows, against 1/d1 = 0.002 at random."""


def neuron_kinds(cosines: Tensor) -> Tensor:
    """Positions in ``KINDS``, (run, m), from squared cosines (run, m, d)."""
    pure = dominant(cosines).any(dim=2)
    mixed = carried(cosines).sum(dim=2) >= 2
    weak = torch.full_like(pure, WEAK, dtype=torch.int64)
    return torch.where(pure, PURE, torch.where(mixed, MIXED, weak))


def lucky_examples(cosines: Tensor, level: float = LUCKY_LEVEL) -> Tensor:
    """Pure neurons at least as aligned as the published example: (run, m), boolean."""
    return (neuron_kinds(cosines) == PURE) & (cosines.amax(dim=2) >= level)


def count_by_group(cosines: Tensor, chosen: Tensor, majority: int) -> Tensor:
    """How many ``chosen`` neurons, (run, m), have their strongest feature among the first
    ``majority`` features, and among the others: (run, 2)."""
    first = cosines.argmax(dim=2) < majority
    return torch.stack([(chosen & first).sum(dim=1), (chosen & ~first).sum(dim=1)], dim=1)
