"""The kernel that selects on a GPU chooses exactly as a stable sort does; a CPU never asks it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from rarefy.pruning import cuda_selection
from rarefy.pruning.masks import keep_largest, project_largest, search_levels

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def sorted_out(scores: Tensor, keep: Tensor) -> Tensor:
    """The definition by a stable sort, NaN first; slow, and the same on every device."""
    rank = scores.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    return rank < keep.expand(scores.shape[:-1])[..., None]


def test_the_kernel_is_not_asked_on_a_cpu() -> None:
    for dtype in (torch.float32, torch.float64):
        assert not cuda_selection.usable(torch.ones(3, 4, dtype=dtype))
    assert not cuda_selection.usable(torch.ones(0, 4))


@needs_gpu
@pytest.mark.parametrize("width", [1, 4, 7, 200, 256, 1025, 4096, 4608, 8193, 16384])
@pytest.mark.parametrize(
    "kind", ["different", "many equals", "all equal", "with zeros", "with nan"]
)
def test_the_kernel_chooses_as_a_stable_sort_does(width: int, kind: str) -> None:
    generator = torch.Generator().manual_seed(width)
    weights = torch.randn(6, 5, width, generator=generator)
    if kind == "many equals":
        weights = (2 * weights).round()
    elif kind == "all equal":
        weights = weights.sign()
    elif kind == "with zeros":
        weights[..., ::2] = 0
    elif kind == "with nan":
        weights[0, 0, 0], weights[1, 1, -1] = math.nan, math.inf
    keep = torch.randint(0, width + 1, (6, 1), generator=generator)
    there = weights.cuda()
    assert cuda_selection.usable(there)
    kept = keep_largest(there.abs(), keep.cuda())
    assert torch.equal(kept.cpu(), sorted_out(weights.abs(), keep))
    found = project_largest(there, keep.cuda()).cpu()
    torch.testing.assert_close(
        found, project_largest(weights, keep), rtol=0, atol=0, equal_nan=True
    )


@needs_gpu
def test_the_kernel_refuses_what_it_cannot_do() -> None:
    there = torch.ones(2, 3, device="cuda")
    assert not cuda_selection.usable(there.double())
    assert not cuda_selection.usable(torch.ones(1, cuda_selection.LONGEST_ROW + 1, device="cuda"))
    assert keep_largest(there.double(), 2).sum(dim=1).tolist() == [2, 2]


@needs_gpu
@pytest.mark.parametrize("width", [200, 4608, 16384])
def test_the_kernel_takes_scores_of_any_sign(width: int) -> None:
    scores = torch.randn(9, width, generator=torch.Generator().manual_seed(width))
    scores[0, 3], scores[1, 5], scores[2, 7] = -math.nan, math.inf, -math.inf
    keep = torch.linspace(0, width, 9).long()
    kept = keep_largest(scores.cuda(), keep.cuda()).cpu()
    assert torch.equal(kept, sorted_out(scores, keep))


@needs_gpu
@pytest.mark.parametrize("kind", ["different", "many equals", "with zeros", "with nan"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rows_that_are_too_long_are_chosen_without_waiting(kind: str, dtype: torch.dtype) -> None:
    width = cuda_selection.LONGEST_ROW + 77
    scores = torch.randn(3, width, generator=torch.Generator().manual_seed(1)).abs()
    if kind == "many equals":
        scores = (2 * scores).round()
    elif kind == "with zeros":
        scores[:, ::2] = 0
    elif kind == "with nan":
        scores[0, ::3] = math.nan
    scores = scores.to(dtype)
    there, each = scores.cuda(), torch.tensor([0, 5000, width])
    counts = each.cuda()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = [keep_largest(there, keep) for keep in (0, 1, width // 2, width)]
        by_row = keep_largest(there, counts)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for keep, kept in zip((0, 1, width // 2, width), found, strict=True):
        assert torch.equal(kept.cpu(), sorted_out(scores, torch.tensor(keep)))
    assert torch.equal(by_row.cpu(), sorted_out(scores, each))


@needs_gpu
@pytest.mark.parametrize("kind", ["different", "many equals", "with nan"])
def test_what_is_remembered_of_the_last_choice_changes_nothing(kind: str) -> None:
    weights = torch.randn(12, 200, generator=torch.Generator("cuda").manual_seed(0), device="cuda")
    keep = torch.tensor([0, 1, 2, 5, 20, 50, 100, 150, 198, 199, 200, 200], device="cuda")
    levels = search_levels(weights)
    assert levels is not None
    for step in range(10):
        if kind == "with nan" and step == 3:
            weights[4, 5], weights[6] = -math.nan, math.nan
        found = project_largest(weights, keep, levels)
        wanted = torch.where(sorted_out(weights.abs(), keep), weights, 0.0)
        torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)
        weights = found + 0.05 * torch.randn_like(found)  # (NaN is now one that a GPU makes)
        if kind == "many equals":
            weights = (4 * weights).round()
    assert bool((levels > 0).any())
