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

_WHOLE = {torch.float32: torch.int32, torch.float64: torch.int64}


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
    if not _by_bits(scores):
        # a stable sort, not topk: topk's choice among equals differs between devices
        order = scores.argsort(dim=-1, descending=True, stable=True)
        place = torch.arange(scores.shape[-1], device=scores.device).expand_as(scores)
        rank = torch.empty_like(order).scatter_(-1, order, place)
        return rank < keep[..., None]
    return _marks(_ranks(scores), keep).bool()


def project_largest(weights: Tensor, keep: Tensor | int, levels: Tensor | None = None) -> Tensor:
    """The weights with all but the ``keep`` of largest magnitude set to zero (TopK, 002 Sec. 3).

    ``levels`` (see ``search_levels``) remembers where the last call on such weights found the
    limits between kept and pruned: rows in which exactly ``keep`` are above are not sorted again.
    """
    keep = _counts(keep, weights)
    if cuda_selection.usable(weights):
        return cuda_selection.project_largest(weights, keep)
    if not _by_bits(weights):
        return torch.where(keep_largest(weights.abs(), keep), weights, 0.0)
    kind = _WHOLE[weights.dtype]
    magnitudes = weights.contiguous().view(kind) & torch.iinfo(kind).max  # all but the sign's bit
    return masked(weights, _marks(magnitudes, keep, levels))


def search_levels(weights: Tensor) -> Tensor | None:
    """What ``project_largest`` remembers of weights that change little from call to call."""
    return (
        weights.new_zeros(weights.shape[:-1], dtype=_WHOLE[weights.dtype])
        if _by_bits(weights)
        else None
    )


def factor(kept: Tensor, like: Tensor) -> Tensor:
    """A mask in the form that is fastest for ``masked`` with weights such as ``like``."""
    return kept.to(_WHOLE[like.dtype]) if _by_bits(like) else kept


def masked(weights: Tensor, kept: Tensor) -> Tensor:
    """The weights where ``kept`` is true or 1, and zero elsewhere, whatever they are there."""
    if kept.dtype == torch.bool:
        return torch.where(kept, weights, 0.0)
    # bits times 1 or 0: no branch, a tenth of the time of ``where`` on a CPU
    return (weights.contiguous().view(kept.dtype) * kept).view(weights.dtype)


def _counts(keep: Tensor | int, scores: Tensor) -> Tensor:
    candidates = scores.shape[-1]
    if isinstance(keep, int):
        if not 0 <= keep <= candidates:
            raise bad_value("keep", keep, f"must be a count between 0 and {candidates}")
        return torch.full(scores.shape[:-1], keep, device=scores.device)
    return keep.expand(scores.shape[:-1])


def _by_bits(values: Tensor) -> bool:
    """Whether floats are compared as the whole numbers their bits are: the fast way on a CPU."""
    return values.device.type == "cpu" and values.dtype in _WHOLE


def _ranks(scores: Tensor) -> Tensor:
    """Whole numbers in the order of the scores, NaN above all, both zeros alike."""
    kind = _WHOLE[scores.dtype]
    largest = torch.iinfo(kind).max
    bits = (scores + 0.0).view(kind)  # the sum makes -0 a 0
    # bits grow with positive floats, and fall with negative ones, whose sign bit is spread here
    ranks = bits ^ ((bits >> (torch.iinfo(kind).bits - 1)) & largest)
    lost = scores.isnan()
    return ranks.masked_fill_(lost, largest) if bool(lost.any()) else ranks


def _marks(ranks: Tensor, keep: Tensor, levels: Tensor | None = None) -> Tensor:
    """1 at the ``keep`` largest, of equal ones the first, and 0 elsewhere, in the type of
    ``ranks``: sums and products of such marks are many times faster than those of truth values."""
    if levels is None:
        return _sorted_marks(ranks, keep)[0]
    marks = torch.ge(ranks, levels[..., None], out=torch.empty_like(ranks))
    wrong = marks.sum(dim=-1, dtype=marks.dtype) != keep
    if bool(wrong.any()):
        marks[wrong], levels[wrong] = _sorted_marks(ranks[wrong], keep[wrong])
    return marks


def _sorted_marks(ranks: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """The marks, and for each row a level between the last that is kept and the next, (...)."""
    # NumPy's sort of short rows is many times faster than torch's, and as fast as its partial one
    ordered = torch.from_numpy(np.sort(ranks.detach().numpy(), axis=-1))
    place = (ranks.shape[-1] - keep)[..., None]
    threshold = ordered.gather(-1, place.clamp(max=ranks.shape[-1] - 1))
    below = ordered.gather(-1, (place - 1).clamp(min=0))
    levels = (threshold - torch.div(threshold - below, 2, rounding_mode="floor"))[..., 0]
    marks = torch.ge(ranks, threshold, out=torch.empty_like(ranks))
    unclear = marks.sum(dim=-1, dtype=marks.dtype) != keep
    if bool(unclear.any()):  # rare: equal scores at the threshold, or nothing to keep
        those, limit = ranks[unclear], threshold[unclear]
        above, equal = those > limit, those == limit
        missing = (keep[unclear] - above.sum(dim=-1))[..., None]
        marks[unclear] = (above | (equal & (equal.cumsum(dim=-1) <= missing))).to(marks.dtype)
    return marks, levels
