"""From scores to masks: exact counts, ties broken by index.

A mask is true where something is kept. Nothing here knows what is masked (a neuron, a weight, a
filter's coordinate): the last dimension holds the candidates, all others are batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import bad_value


def neuron_norms(weights: Tensor) -> Tensor:
    """Score of a neuron, the norm of its weight vector: (..., m, d1) to (..., m)."""
    return torch.linalg.vector_norm(weights, dim=-1)


def kept_count(pruned_share: Tensor, candidates: int) -> Tensor:
    """How many of ``candidates`` stay when a share is pruned: (run,), int64.

    The pruned number is the nearest whole one, a half rounded up; at least one candidate stays.
    """
    # a share such as 0.7 is not a binary number: a float32's error must not undo a half
    exact = pruned_share.to(torch.float64) * candidates + 1e-6 * candidates
    pruned = torch.floor(exact + 0.5).to(torch.int64)
    return (candidates - pruned).clamp(min=1)


def keep_largest(scores: Tensor, keep: Tensor | int) -> Tensor:
    """True at the ``keep`` largest scores of the last dimension; of equal ones the first stay.

    ``keep`` is one count for all or one for each batch entry (the leading dimensions of scores).
    """
    candidates = scores.shape[-1]
    if isinstance(keep, int):
        if not 0 <= keep <= candidates:
            raise bad_value("keep", keep, f"must be a count between 0 and {candidates}")
        keep = torch.full(scores.shape[:-1], keep, device=scores.device)
    # a stable sort, not topk: topk's choice among equals differs between devices
    order = scores.argsort(dim=-1, descending=True, stable=True)
    place = torch.arange(candidates, device=scores.device).expand_as(scores)
    rank = torch.empty_like(order).scatter_(-1, order, place)
    return rank < keep[..., None]
