"""From scores to masks: exact counts, ties broken by index.

A mask is true where something is kept. Nothing here knows what is masked (a neuron, a weight, a
filter's coordinate): the last dimension holds the candidates, all others are batch.
"""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rarefy.core.compilation import built
from rarefy.core.errors import bad_value
from rarefy.pruning import cuda_selection

_WHOLE = {torch.float32: torch.int32, torch.float64: torch.int64}
_INFINITE = {torch.int32: 0x7F800000, torch.int64: 0x7FF << 52}
"""The bits of infinity; those of NaN are above."""
_SHORT = (torch.bool, torch.uint8, torch.int8, torch.int16)
SHORTEST = 8
"""Rows of so few numbers are not sorted: all are compared with all."""
LONG, MANY, TURNS = 2048, 100_000, 14
"""So long rows of so many numbers together are not sorted either: the threshold is found by
counting, so many times at most."""
VERY_LONG = 16384
"""Rows that are not sorted even if they are left over by that: it ends with a part of them."""


def neuron_norms(weights: Tensor) -> Tensor:
    """Score of a neuron, the norm of its weight vector: (..., m, d1) to (..., m)."""
    return torch.linalg.vector_norm(weights, dim=-1)


def kept_count(pruned_share: Tensor, candidates: int) -> Tensor:
    """How many of ``candidates`` stay when a share is pruned: (run,), int64.

    The pruned number is the nearest whole one, a half rounded up; at least one candidate stays.
    """
    # a share such as 0.7 is not a binary number: a float32's error must not undo a half. (Below a
    # half itself, or a whole number of many candidates would become another one.)
    exact = pruned_share.to(torch.float64) * candidates + min(1e-6 * candidates, 0.25)
    pruned = torch.floor(exact + 0.5).to(torch.int64)
    return (candidates - pruned).clamp(min=1)


def keep_largest(scores: Tensor, keep: Tensor | int) -> Tensor:
    """True at the ``keep`` largest scores of the last dimension; of equal ones the first stay. NaN
    counts as largest: a run that went wrong is not cured by pruning.

    ``keep`` is one count for all or one for each batch entry (it broadcasts to the leading
    dimensions of scores).
    """
    one = keep if isinstance(keep, int) else None
    keep = _counts(keep, scores)
    if scores.numel() == 0:
        return torch.zeros_like(scores, dtype=torch.bool)
    if cuda_selection.usable(scores):
        return cuda_selection.keep_largest(scores, keep)
    ranks = _ranks(scores.contiguous())
    if scores.device.type == "cpu":
        return _chosen_marks(ranks, keep, one).bool()
    return _without_asking(ranks, keep, one)


def project_largest(
    weights: Tensor,
    keep: Tensor | int,
    levels: Tensor | None = None,
    compile_kernels: bool = False,
) -> Tensor:
    """The weights with all but the ``keep`` of largest magnitude set to zero (TopK, 002 Sec. 3).

    ``levels`` (see ``search_levels``) remembers where the last call on such weights found the
    limits between kept and pruned: rows in which exactly ``keep`` are above are not sorted again.
    With ``compile_kernels`` that is done by C++ (``projection.cpp``), where a compiler works.
    """
    if not _by_bits(weights) and not cuda_selection.usable(weights):
        return torch.where(keep_largest(weights.abs(), keep), weights, 0.0)
    keep = _counts(keep, weights)
    if cuda_selection.usable(weights):
        return cuda_selection.project_largest(weights, keep, levels)
    weights = weights.contiguous()
    if levels is None:
        return apply_mask(weights, _chosen_marks(_magnitudes(weights), keep))
    usable = compile_kernels and weights.dtype == torch.float32
    if library := built(Path(__file__).with_name("projection.cpp")) if usable else None:
        pruned, keep = torch.empty_like(weights), keep.long().contiguous()
        sizes = ctypes.c_int64(keep.numel()), ctypes.c_int64(weights.shape[-1])
        given = (ctypes.c_void_p(each.data_ptr()) for each in (weights, keep, levels, pruned))
        library.rarefy_project(*sizes, *given)
        return pruned
    pruned, kept = _from_levels(weights, levels)
    wrong = (kept != keep).nonzero(as_tuple=True)
    if len(wrong[0]):
        rows = weights[wrong]
        marks, levels[wrong] = _sorted_marks(_magnitudes(rows), keep[wrong])
        pruned[wrong] = apply_mask(rows, marks)
    return pruned


def _magnitudes(weights: Tensor) -> Tensor:
    """Whole numbers in the order of the weights' magnitudes: all bits but the sign's."""
    kind = _WHOLE[weights.dtype]
    return weights.view(kind) & torch.iinfo(kind).max


def _from_levels(weights: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
    """The weights of at least their row's level, the others zero, and how many these are."""
    marks = (_magnitudes(weights) >= levels[..., None]).to(levels.dtype)
    return apply_mask(weights, marks), marks.sum(dim=-1, dtype=levels.dtype)


def search_levels(weights: Tensor) -> Tensor | None:
    """What ``project_largest`` remembers of weights that change little from call to call."""
    if not _by_bits(weights) and not cuda_selection.usable(weights):
        return None
    return weights.new_zeros(weights.shape[:-1], dtype=_WHOLE[weights.dtype])


def mask_factor(kept: Tensor, like: Tensor) -> Tensor:
    """A mask in the form that is fastest for ``apply_mask`` with weights such as ``like``."""
    return kept.to(_WHOLE[like.dtype]) if _by_bits(like) else kept


def apply_mask(weights: Tensor, kept: Tensor) -> Tensor:
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
        return torch.full(scores.shape[:-1], keep, dtype=torch.int32, device=scores.device)
    return keep.expand(scores.shape[:-1])


def _by_bits(values: Tensor) -> bool:
    """Whether floats are compared as the whole numbers their bits are: the fast way on a CPU."""
    return values.device.type == "cpu" and values.dtype in _WHOLE


def _ranks(scores: Tensor) -> Tensor:
    """Whole numbers in the order of the scores, NaN above all, both zeros alike."""
    if not scores.is_floating_point():
        return scores.to(torch.int32) if scores.dtype in _SHORT else scores
    if scores.dtype not in _WHOLE:
        scores = scores.float()
    kind = _WHOLE[scores.dtype]
    largest = torch.iinfo(kind).max
    bits = (scores + 0.0).view(kind)  # the sum makes -0 a 0
    if scores.device.type == "cpu":
        low, high = (int(each) for each in bits.aminmax())
        if low >= 0 and high <= _INFINITE[kind]:  # usual: scores are not negative, and numbers
            return bits
    # bits grow with positive floats, and fall with negative ones, whose sign bit is spread here
    ranks = bits ^ ((bits >> (torch.iinfo(kind).bits - 1)) & largest)
    return ranks.masked_fill_(scores.isnan(), largest)


def _chosen_marks(ranks: Tensor, keep: Tensor, one: int | None = None) -> Tensor:
    """1 at the ``keep`` largest, of equal ones the first, and 0 elsewhere, in the type of
    ``ranks``: sums and products of such marks are many times faster than those of truth values.
    ``one``: the count, if all rows have the same."""
    width = ranks.shape[-1]
    if width <= SHORTEST:
        return _compared(ranks, keep)
    if width >= LONG and ranks.numel() >= MANY and ranks.dtype == torch.int32:
        threshold = _searched(ranks, keep)
    elif one is not None and one > 0:
        threshold = _ordered(ranks)[..., width - one, None]
    else:
        place = (width - keep)[..., None].long()
        threshold = _ordered(ranks).gather(-1, place.clamp(max=width - 1))
    return _above(ranks, threshold, keep)


def _ordered(ranks: Tensor) -> Tensor:
    # NumPy's sort of short rows is many times faster than torch's, and as fast as its partial one
    # (which takes ten times as long where many are equal)
    return torch.from_numpy(np.sort(ranks.detach().numpy(), axis=-1))


def _sorted_marks(ranks: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """The marks, and for each row a level between the last that is kept and the next, (...)."""
    ordered = _ordered(ranks)
    place = (ranks.shape[-1] - keep)[..., None].long()
    threshold = ordered.gather(-1, place.clamp(max=ranks.shape[-1] - 1))
    below = ordered.gather(-1, (place - 1).clamp(min=0))
    levels = (threshold - torch.div(threshold - below, 2, rounding_mode="floor"))[..., 0]
    return _above(ranks, threshold, keep), levels


def _above(ranks: Tensor, threshold: Tensor, keep: Tensor) -> Tensor:
    """The marks, given the last number of each row that is kept: (..., 1)."""
    marks = torch.ge(ranks, threshold, out=torch.empty_like(ranks))
    unclear = marks.sum(dim=-1, dtype=marks.dtype) != keep
    if bool(unclear.any()):  # rare: equal scores at the threshold, or nothing to keep
        found = _first_of_equals(ranks[unclear], threshold[unclear], keep[unclear])
        marks[unclear] = found.to(marks.dtype)
    return marks


def _searched(ranks: Tensor, keep: Tensor) -> Tensor:
    """A number from which on a long row has ``keep``, or else the last that is kept: (..., 1).
    Found by counting, a pass for all rows at a time, which is several times faster than sorting."""
    rows, wanted = ranks.reshape(-1, ranks.shape[-1]), keep.reshape(-1).long()
    low, high = rows.amin(dim=1).long(), rows.amax(dim=1).long() + 1
    # from low on there are at_low >= wanted, from high on at_high, which are fewer
    at_low, at_high = torch.full_like(low, rows.shape[1]), torch.zeros_like(low)
    marks = torch.empty_like(rows)
    for turn in range(TURNS):
        if not bool((at_low != wanted).any()):
            break
        # in proportion to the counts, which is nearly right, and in turn with it in the middle
        way = 0.5 if turn % 2 else (at_low - wanted) / (at_low - at_high)
        middle = low + ((high - low) * way).long()
        middle = torch.minimum(torch.maximum(middle, low + 1), high - 1)
        torch.ge(rows, middle.to(rows.dtype)[:, None], out=marks)
        above = marks.sum(dim=1, dtype=rows.dtype).long()
        enough = above >= wanted
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
        at_low, at_high = torch.where(enough, above, at_low), torch.where(enough, at_high, above)
    left = torch.nonzero(at_low != wanted)[:, 0]  # many are equal, or very close
    if len(left) and rows.shape[1] < VERY_LONG:
        place = (rows.shape[1] - wanted[left])[:, None].clamp(max=rows.shape[1] - 1)
        low[left] = _ordered(rows[left]).gather(1, place)[:, 0].long()
    else:  # only what lies between the limits (high itself may have more than 32 bits)
        for row in left.tolist():
            between = rows[row][(rows[row] >= low[row]) & (rows[row] <= high[row] - 1)]
            last = min(int(at_low[row] - wanted[row]), len(between) - 1)
            low[row] = _ordered(between)[last]
    return low.to(rows.dtype).reshape(*ranks.shape[:-1], 1)


def _first_of_equals(ranks: Tensor, threshold: Tensor, keep: Tensor) -> Tensor:
    """True above the threshold, and at as many of those that are equal to it as are missing."""
    above, equal = ranks > threshold, ranks == threshold
    missing = (keep - above.sum(dim=-1, dtype=torch.int32))[..., None]
    return above | (equal & (equal.cumsum(dim=-1, dtype=torch.int32) <= missing))


def _compared(ranks: Tensor, keep: Tensor) -> Tensor:
    """The marks of very short rows (two of four, say): each number is compared with each other."""
    columns, wanted = ranks.reshape(-1, ranks.shape[-1]).unbind(dim=1), keep.reshape(-1)
    behind = [torch.zeros_like(each) for each in columns]  # how many of the row come before it
    first_wins = torch.empty_like(behind[0])
    for first, second in itertools.combinations(range(len(columns)), 2):
        torch.ge(columns[first], columns[second], out=first_wins)
        behind[second].add_(first_wins)
        behind[first].add_(1).sub_(first_wins)
    marks = torch.empty_like(ranks)
    for column, place in zip(marks.view(-1, len(columns)).unbind(dim=1), behind, strict=True):
        column.copy_(torch.lt(place, wanted, out=place))
    return marks


def _countable(ranks: Tensor) -> bool:
    """Counting by ``histc`` is refused where somebody asked torch for deterministic algorithms."""
    return (
        ranks.is_cuda
        and ranks.dtype == torch.int32
        and not torch.are_deterministic_algorithms_enabled()
    )


def _digit_by_digit(ranks: Tensor, keep: int) -> Tensor:
    """The last number of one row that is kept: (1,). Its four bytes are found one after the other,
    by counting how often each occurs behind those that are known; torch would sort the row."""
    missing = torch.full((1,), keep, dtype=torch.float64, device=ranks.device)
    found = torch.zeros(1, dtype=torch.int32, device=ranks.device)
    for shift in (24, 16, 8, 0):
        byte = ranks >> shift if shift == 24 else (ranks >> shift) & 0xFF
        lowest = -128 if shift == 24 else 0  # the highest has the sign
        if shift < 24:  # out of reach if the higher bytes differ
            byte = torch.where(ranks >> (shift + 8) == found, byte, -1)
        # (histc counts in the type it is given: float64 is exact)
        counts = torch.histc(byte.double(), bins=256, min=lowest, max=lowest + 256)
        from_here = counts.flip(0).cumsum(0).flip(0)  # how many have this byte or a higher one
        digit = (from_here >= missing).sum(dim=0, keepdim=True) - 1
        missing = missing - (from_here - counts).gather(0, digit)  # (an index [] would wait for it)
        found = (found << 8) + digit.to(torch.int32) + lowest
    return found


def _without_asking(ranks: Tensor, keep: Tensor, one: int | None) -> Tensor:
    """The mask on a device that should not be waited for: no step depends on a value there."""
    width = ranks.shape[-1]
    if one is not None and one in (0, width):
        return torch.full(ranks.shape, one == width, dtype=torch.bool, device=ranks.device)
    if one is not None and ranks.numel() == width >= LONG and _countable(ranks):
        threshold = _digit_by_digit(ranks.flatten(), one).reshape(*keep.shape, 1)
    elif one is not None:
        threshold = ranks.topk(one, dim=-1, sorted=False).values.amin(dim=-1, keepdim=True)
    else:
        place = (width - keep)[..., None].long().clamp(max=width - 1)
        threshold = ranks.sort(dim=-1).values.gather(-1, place)
    return _first_of_equals(ranks, threshold, keep)
