"""How well a score tells positives from negatives, many runs at once."""

from __future__ import annotations

import torch
from torch import Tensor


def auroc(scores: Tensor, positive: Tensor) -> Tensor:
    """Probability that a positive scores higher than a negative, ties counted half: (...,) for
    (..., sample). NaN where one kind is missing or a score is not finite.

    The rank sum of the positives (Mann and Whitney 1947); equal scores share their middle rank.
    """
    scores = scores.to(torch.float64).contiguous()
    ordered = scores.sort(dim=-1).values
    below = torch.searchsorted(ordered, scores, side="left")
    up_to = torch.searchsorted(ordered, scores, side="right")
    rank = (below + up_to + 1).to(torch.float64) / 2  # from 1
    yes = positive.sum(dim=-1).to(torch.float64)
    no = positive.shape[-1] - yes
    wins = (rank * positive).sum(dim=-1) - yes * (yes + 1) / 2
    known = (yes > 0) & (no > 0) & torch.isfinite(scores).all(dim=-1)
    return torch.where(known, wins / (yes * no).clamp(min=1), torch.nan)
