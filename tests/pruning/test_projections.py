"""Weights of which the largest stay as they were."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mask_cases import ANY, TIED, scores_and_counts, tables
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.settings import compiler_present
from rarefy.pruning.masks import (
    apply_mask,
    keep_largest,
    mask_factor,
    project_largest,
    search_levels,
)


@given(scores_and_counts())
def test_a_projection_keeps_the_largest_magnitudes_as_they_were(
    case: tuple[Tensor, Tensor],
) -> None:
    weights, count = case
    found = project_largest(weights, count)
    kept = keep_largest(weights.abs(), count)
    assert torch.equal(found[kept], weights[kept])  # signs and all
    assert (found[~kept] == 0).all()
    assert torch.equal(project_largest(found, count), found)  # nothing more to prune


def test_a_projection_breaks_ties_between_signs_by_index() -> None:
    weights = torch.tensor([[1.0, -1.0, 1.0, -3.0]])
    assert project_largest(weights, 2).tolist() == [[1.0, 0.0, 0.0, -3.0]]
    assert project_largest(weights, 3).tolist() == [[1.0, -1.0, 0.0, -3.0]]
    assert weights.tolist() == [[1.0, -1.0, 1.0, -3.0]]


def test_a_projection_has_one_count_for_all_or_one_that_broadcasts() -> None:
    weights = torch.arange(1.0, 25.0).reshape(2, 3, 4)
    assert (project_largest(weights, 1) != 0).sum(dim=-1).tolist() == [[1] * 3] * 2
    each = project_largest(weights, torch.tensor([1, 3])[:, None])
    assert (each != 0).sum(dim=-1).tolist() == [[1] * 3, [3] * 3]
    assert torch.equal(project_largest(weights, 4), weights)
    assert not project_largest(weights, 0).any()
    with pytest.raises(UsageError, match="^keep=5: must be a count between 0 and 4$"):
        project_largest(weights, 5)


@given(st.lists(tables(st.sampled_from([TIED, ANY]).flatmap(lambda v: v)), max_size=3), st.data())
def test_a_remembered_level_changes_no_choice(others: list[Tensor], data: st.DataObject) -> None:
    first = data.draw(tables(ANY))
    keep = data.draw(st.integers(0, first.shape[1]))
    levels = {compiled: search_levels(first) for compiled in {False, compiler_present()}}
    nudged = [first, first * 1.01, first.roll(1, dims=1), first]
    for weights in [*nudged, *(other for other in others if other.shape == first.shape)]:
        expected = project_largest(weights, keep)
        for compiled, known in levels.items():
            assert torch.equal(project_largest(weights, keep, known, compiled), expected)


def test_rows_that_hardly_change_are_not_sorted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(4, 6, 50, generator=generator)
    keep = torch.tensor([1, 10, 40, 50])[:, None]
    levels = search_levels(weights)
    project_largest(weights, keep, levels)
    expected = project_largest(1.0001 * weights, keep)
    monkeypatch.setattr("numpy.sort", None)
    assert torch.equal(project_largest(1.0001 * weights, keep, levels), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_is_masked_is_zero_whatever_it_was(dtype: torch.dtype) -> None:
    weights = torch.tensor([math.nan, -2.0, math.inf, -math.inf, 3.0, -0.0], dtype=dtype)
    kept = torch.tensor([False, True, False, True, False, True])
    for form in (kept, mask_factor(kept, weights)):
        assert apply_mask(weights, form).tolist() == [0.0, -2.0, 0.0, -math.inf, 0.0, 0.0]
