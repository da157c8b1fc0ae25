"""The ``keep`` largest of many short rows on a GPU, exactly, in one pass over memory.

On an H200, at the published grid of 002, sorting the rows once added about 71 ms to an unpruned
step of 33 ms (an early version of the training). The bits of floats are ordered like the floats, so
each row searches the threshold by bisection on integers while it lies in registers; a search ends
as soon as exactly ``keep`` numbers are above. Where equal numbers stand at the threshold, a second
bisection on the index keeps the first ones. Needs Triton, which comes with PyTorch's CUDA builds;
``benchmarks/bench_topk_gpu.py`` compares its results with a stable sort.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import torch
from torch import Tensor

LONGEST_ROW = 16384
"""A row must fit into one program's registers: 1,024 threads with 16 numbers each."""


@cache
def _present() -> bool:
    return importlib.util.find_spec("triton") is not None


def usable(scores: Tensor) -> bool:
    """Whether the kernel takes these: float32 on a GPU with Triton, rows not too long."""
    return (
        scores.is_cuda
        and scores.dtype == torch.float32
        and 0 < scores.shape[-1] <= LONGEST_ROW
        and scores.numel() > 0
        and _present()
    )


def keep_largest(scores: Tensor, keep: Tensor) -> Tensor:
    """Mask of the largest scores, as in ``masks.keep_largest``."""
    kept = torch.empty(scores.shape, dtype=torch.bool, device=scores.device)
    _launch(scores.contiguous(), keep, kept.view(torch.uint8), project=False)
    return kept


def project_largest(weights: Tensor, keep: Tensor, levels: Tensor | None = None) -> Tensor:
    """Weights with all but those of largest magnitude zero, as in ``masks.project_largest``."""
    found = torch.empty_like(weights, memory_format=torch.contiguous_format)
    _launch(weights.contiguous(), keep, found, project=True, levels=levels)
    return found


def _launch(
    rows: Tensor, keep: Tensor, out: Tensor, project: bool, levels: Tensor | None = None
) -> None:
    import triton  # only where there is a GPU

    width = rows.shape[-1]
    count = rows.numel() // width
    block = triton.next_power_of_2(width)
    # one row and one warp per program: rows end their search at different times, and never wait
    # (longer rows get so many warps that a thread holds no more than 32 numbers, then 16)
    warps = 1 if block <= 1024 else 4 if block <= 4096 else block // 512
    keep = keep.to(torch.int32).contiguous().reshape(-1)
    remember = levels is not None
    given = (rows, keep, out, levels if remember else keep, width)
    _kernel()[(count,)](*given, block, project, remember, num_warps=warps)


@cache
def _kernel() -> Any:
    import triton
    import triton.language as tl

    @triton.jit
    def select(  # type: ignore[no-untyped-def]
        rows, keep, out, levels, width,
        BLOCK: tl.constexpr, PROJECT: tl.constexpr, REMEMBER: tl.constexpr,
    ):  # fmt: skip
        row = tl.program_id(0)
        column = tl.arange(0, BLOCK)
        here = column < width
        place = row.to(tl.int64) * width + column
        value = tl.load(rows + place, mask=here, other=0.0)
        wanted = tl.load(keep + row)
        # whole numbers in the order of the scores; what is absent never counts
        if PROJECT:
            # NaN is the largest, and there is a number above: a GPU's own NaN has all bits
            key = tl.minimum(tl.abs(value).to(tl.int32, bitcast=True), 0x7FC00000)
            key = tl.where(here, key, -1)
            low = wanted * 0  # a tensor from the start: loops keep types
        else:  # scores of any sign: the bits of negative floats are ordered the other way round
            bits = (value + 0.0).to(tl.int32, bitcast=True)  # -0.0 is 0.0
            key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
            key = tl.where(value != value, 2147483647, key)  # NaN of either sign is the largest
            # limits have 64 bits, since their difference may need them; what is absent is lower
            # than minus infinity
            low = tl.min(tl.where(here, key, 2147483647), axis=0).to(tl.int64)
            key = tl.where(here, key, -2147483647)
        # from low on there are at_low >= wanted numbers, from high on there are fewer
        at_low = wanted * 0 + width
        high = tl.max(key, axis=0).to(low.dtype) + 1
        if REMEMBER:  # where the limit was the last time it mostly still is
            guess = tl.maximum(tl.load(levels + row), 0)
            above = tl.sum((key >= guess).to(tl.int32), axis=0)
            enough = above >= wanted
            low = tl.where(enough, guess, low)
            at_low = tl.where(enough, above, at_low)
            high = tl.where(enough, high, tl.minimum(guess, high))
        turn = wanted * 0
        while (high - low > 1) & (at_low != wanted):
            # halving the floats finds the threshold among like numbers soonest; halving their
            # bits ends for certain, however close or small they are
            middle = low + (high - low) // 2
            if PROJECT:
                half = 0.5 * (low.to(tl.float32, bitcast=True) + high.to(tl.float32, bitcast=True))
                between = half.to(tl.int32, bitcast=True)
                usable = (turn < 12) & (between > low) & (between < high)
                middle = tl.where(usable, between, middle)
            above = tl.sum((key >= middle.to(tl.int32)).to(tl.int32), axis=0)
            enough = above >= wanted
            low = tl.where(enough, middle, low)
            at_low = tl.where(enough, above, at_low)
            high = tl.where(enough, high, middle)
            turn += 1
        least = low.to(tl.int32)
        kept = key >= least
        if REMEMBER:
            if turn > 0:  # in the middle between the last that is kept and the next, as numbers
                under = tl.max(tl.where(kept, 0, key), axis=0).to(tl.float32, bitcast=True)
                over = tl.min(tl.where(kept, key, 0x7F7FFFFF), axis=0)
                middle = 0.5 * under + 0.5 * over.to(tl.float32, bitcast=True)
                tl.store(levels + row, tl.minimum(middle.to(tl.int32, bitcast=True), over))
        if at_low != wanted:  # equal numbers at the threshold: the first of them stay
            equal = key == least
            missing = wanted - tl.sum((key > least).to(tl.int32), axis=0)
            first = wanted * 0
            last = first + BLOCK
            while (
                last - first > 1
            ):  # fewer than missing equals lie before first, enough before last
                centre = (first + last) // 2
                seen = tl.sum((equal & (column < centre)).to(tl.int32), axis=0)
                first = tl.where(seen < missing, centre, first)
                last = tl.where(seen < missing, last, centre)
            kept = (key > least) | (equal & (column < last) & (missing > 0))
        if PROJECT:
            tl.store(out + place, tl.where(kept, value, 0.0), mask=here)
        else:
            tl.store(out + place, kept.to(tl.uint8), mask=here)

    return select
