"""From scores to masks: exact counts, ties broken by index.

A mask is true where something is kept. Nothing here knows what is masked (a neuron, a weight, a
filter's coordinate): the last dimension holds the candidates, all others are batch.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.pruning import cuda_selection


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
    """True at the ``keep`` largest scores of the last dimension; of equal ones the first stay. NaN
    counts as largest: a run that went wrong is not cured by pruning.

    ``keep`` is one count for all or one for each batch entry (it broadcasts to the leading
    dimensions of scores).
    """
    keep = _counts(keep, scores)
    if cuda_selection.usable(scores):
        return cuda_selection.keep_largest(scores, keep)
    if scores.device.type != "cpu" or scores.dtype not in (torch.float32, torch.float64):
        # a stable sort, not topk: topk's choice among equals differs between devices
        order = scores.argsort(dim=-1, descending=True, stable=True)
        place = torch.arange(scores.shape[-1], device=scores.device).expand_as(scores)
        rank = torch.empty_like(order).scatter_(-1, order, place)
        return rank < keep[..., None]
    threshold, largest = _kth_largest(scores, keep)
    kept = (scores >= threshold) & (keep > 0)[..., None]
    unclear = (kept.sum(dim=-1) != keep) | largest.isnan()
    if bool(unclear.any()):  # rare: equal scores at the threshold, or a NaN
        kept[unclear] = _first_of_equals(scores[unclear], threshold[unclear], keep[unclear])
    return kept


def project_largest(weights: Tensor, keep: Tensor | int) -> Tensor:
    """The weights with all but the ``keep`` of largest magnitude set to zero (TopK, 002 Sec. 3)."""
    keep = _counts(keep, weights)
    if cuda_selection.usable(weights):
        return cuda_selection.project_largest(weights, keep)
    return torch.where(keep_largest(weights.abs(), keep), weights, 0.0)


def _counts(keep: Tensor | int, scores: Tensor) -> Tensor:
    candidates = scores.shape[-1]
    if isinstance(keep, int):
        if not 0 <= keep <= candidates:
            raise bad_value("keep", keep, f"must be a count between 0 and {candidates}")
        return torch.full(scores.shape[:-1], keep, device=scores.device)
    return keep.expand(scores.shape[:-1])


def _kth_largest(scores: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest score that is kept, (..., 1), and the largest of all, (...). NumPy's sort of
    short rows is many times faster than torch's on a CPU, and as fast as its own partial one."""
    ordered = torch.from_numpy(np.sort(scores.detach().numpy(), axis=-1))
    place = (scores.shape[-1] - keep).clamp(max=scores.shape[-1] - 1)
    return ordered.gather(-1, place[..., None]), ordered[..., -1]


def _first_of_equals(scores: Tensor, threshold: Tensor, keep: Tensor) -> Tensor:
    """What is above the threshold, and of what equals it the first until the count is full."""
    lost, all_lost = scores.isnan(), threshold.isnan()
    above = (scores > threshold) | (lost & ~all_lost)
    equal = (scores == threshold) | (lost & all_lost)
    missing = (keep - above.sum(dim=-1))[..., None]
    return above | (equal & (equal.cumsum(dim=-1) <= missing))
