"""What a training remembers of each image, and how it shows: BCL-I of Zhou et al. 2022,
"Contrastive Learning with Boosted Memorization".

An image whose loss stays high is one that the network does not get to know, a rare one as a rule.
Its views are changed more: by one operation of RandAugment behind the usual ones, with probability
M and strength 10 + 20 M of 30, in which M is its loss among those of all images.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.train.views.rand_augment import Augment, draw_augment
from rarefy.train.views.view_parameters import VIEWS

KEPT = 0.97
"""Of what was remembered, when an image is seen again."""
WEAKEST = 1 / 3
"""Strength at M = 0, of the strongest."""


class BoostedMemory:
    """Of ``count`` images. ``boost`` (count,) is M, one for a whole epoch: 0 in the first."""

    def __init__(self, count: int, device: torch.device) -> None:
        self.losses = torch.zeros(count, device=device)
        """Averages over epochs, m = 0.97 m + 0.03 loss, beginning with the first loss."""
        self.seen = torch.zeros(count, dtype=torch.bool, device=device)
        self.boost = torch.zeros(count, device=device)

    def see(self, rows: Tensor, losses: Tensor) -> None:
        """The losses of a batch: of images ``rows``, each there once."""
        before = self.losses[rows]
        mixed = KEPT * before + (1 - KEPT) * losses
        self.losses.index_copy_(0, rows, torch.where(self.seen[rows], mixed, losses))
        self.seen.index_fill_(0, rows, True)

    def refresh(self) -> None:
        """M = 1/2 + (m - mean) / (2 max|m - mean|), over all images that were seen; the others wait
        with 0. (The standard deviation by which the paper divides first cancels.)"""
        count = self.seen.sum().clamp(min=1)
        mean = torch.where(self.seen, self.losses, 0.0).sum() / count
        away = torch.where(self.seen, self.losses - mean, 0.0)
        most = away.abs().max()
        found = 0.5 + away / (2 * torch.where(most > 0, most, 1.0))
        self.boost.copy_(torch.where(self.seen, found, 0.0))

    def augment(self, rows: Tensor, generator: torch.Generator) -> Augment:
        """What is drawn for the views of images ``rows``, each view on its own."""
        boost = self.boost[rows].repeat_interleave(VIEWS)
        return draw_augment(boost, WEAKEST + (1 - WEAKEST) * boost, generator)

    def state_dict(self) -> dict[str, Tensor]:
        return {"losses": self.losses, "seen": self.seen, "boost": self.boost}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, value in self.state_dict().items():
            value.copy_(state[name])
