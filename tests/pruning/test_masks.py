"""Masks keep an exact count whatever the scores are, and choose among equals by index."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.settings import compiler_present
from rarefy.pruning import masks
from rarefy.pruning.masks import (
    apply_mask,
    keep_largest,
    mask_factor,
    project_largest,
    search_levels,
)

# few different values, so that most scores are equal to some other one; both zeros, both infinities
TIED = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, -1.0, 1e-308, math.inf, -math.inf])
ANY = st.floats(allow_nan=False, width=64)


@st.composite
def tables(draw: st.DrawFn, values: st.SearchStrategy[float]) -> Tensor:
    runs, candidates = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    flat = draw(st.lists(values, min_size=runs * candidates, max_size=runs * candidates))
    return torch.tensor(flat, dtype=torch.float64).reshape(runs, candidates)


@st.composite
def scores_and_counts(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    scores = draw(tables(draw(st.sampled_from([TIED, ANY]))))
    runs, candidates = scores.shape
    count = draw(st.lists(st.integers(0, candidates), min_size=runs, max_size=runs))
    return scores, torch.tensor(count)


@st.composite
def distinct_scores(draw: st.DrawFn) -> Tensor:
    candidates = draw(st.integers(1, 12))
    row = st.lists(
        st.floats(-1e6, 1e6), min_size=candidates, max_size=candidates, unique_by=lambda v: v + 0.0
    )
    return torch.tensor(draw(st.lists(row, min_size=1, max_size=3)), dtype=torch.float64)


def by_hand(scores: list[float], count: int) -> list[bool]:
    """The first of the largest, one after the other."""
    kept = [False] * len(scores)
    for _ in range(count):
        left = [i for i in range(len(scores)) if not kept[i]]
        kept[max(left, key=lambda i: (scores[i], -i))] = True
    return kept


# ---------------------------------------------------------------------------------------- the count


@given(scores_and_counts())
def test_every_run_keeps_exactly_its_own_count_of_the_largest(case: tuple[Tensor, Tensor]) -> None:
    scores, count = case
    kept = keep_largest(scores, count)
    assert kept.dtype == torch.bool and kept.shape == scores.shape
    assert torch.equal(kept.sum(dim=1), count)
    for row, mask, number in zip(scores.tolist(), kept.tolist(), count.tolist(), strict=True):
        assert mask == by_hand(row, number)


@given(scores_and_counts())
def test_one_number_for_all_is_the_same_as_a_number_for_each(case: tuple[Tensor, Tensor]) -> None:
    scores, count = case
    number = int(count[0])
    expected = keep_largest(scores, torch.full((len(scores),), number))
    assert torch.equal(keep_largest(scores, number), expected)


@given(tables(TIED))
def test_all_may_be_kept_and_none(scores: Tensor) -> None:
    assert keep_largest(scores, scores.shape[1]).all()
    assert not keep_largest(scores, 0).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_of_equal_scores_the_first_stay(dtype: torch.dtype) -> None:
    # 300 candidates: far more than the size up to which any sort happens to be stable
    scores = torch.ones(3, 300, dtype=dtype)
    kept = keep_largest(scores, torch.tensor([0, 7, 299]))
    expected = torch.arange(300) < torch.tensor([0, 7, 299])[:, None]
    assert torch.equal(kept, expected)
    scores[:, 100::100] = 2  # positions 100 and 200 come before all others
    kept = keep_largest(scores, torch.tensor([1, 2, 5]))
    places = [torch.nonzero(row).flatten().tolist() for row in kept]
    assert places == [[100], [100, 200], [0, 1, 2, 100, 200]]


def test_more_than_one_batch_dimension_is_allowed() -> None:
    scores = torch.arange(24.0).reshape(2, 3, 4)
    kept = keep_largest(scores, torch.tensor([[0, 1, 2], [3, 4, 0]]))
    assert kept.sum(dim=2).tolist() == [[0, 1, 2], [3, 4, 0]]
    assert kept[1, 0].tolist() == [False, True, True, True]
    assert keep_largest(scores[0, 0], 1).tolist() == [False, False, False, True]


@given(distinct_scores(), st.data())
def test_without_equals_the_choice_is_that_of_topk(scores: Tensor, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, scores.shape[1]))
    expected = torch.zeros_like(scores, dtype=torch.bool)
    expected.scatter_(1, scores.topk(count, dim=1).indices, True)
    assert torch.equal(keep_largest(scores, count), expected)


# -------------------------------------------------------------------------------------- invariances


@given(tables(st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0])), st.integers(-300, 300), st.data())
def test_a_positive_factor_changes_nothing(
    scores: Tensor, exponent: int, data: st.DataObject
) -> None:
    """A power of two, which keeps equals equal and different scores different."""
    count = data.draw(st.integers(0, scores.shape[1]))
    scaled = scores * 2.0**exponent
    assert torch.equal(keep_largest(scaled, count), keep_largest(scores, count))


@given(distinct_scores(), st.data())
def test_a_permutation_of_different_scores_permutes_the_mask(
    scores: Tensor, data: st.DataObject
) -> None:
    candidates = scores.shape[1]
    count = data.draw(st.integers(0, candidates))
    order = list(data.draw(st.permutations(range(candidates))))
    assert torch.equal(keep_largest(scores[:, order], count), keep_largest(scores, count)[:, order])


@given(scores_and_counts())
def test_a_run_keeps_the_same_alone_and_in_company(case: tuple[Tensor, Tensor]) -> None:
    scores, count = case
    together = keep_largest(scores, count)
    for run in range(len(scores)):
        one = slice(run, run + 1)
        assert torch.equal(keep_largest(scores[one], count[one]), together[one])


def test_the_scores_are_left_as_they_were() -> None:
    scores = torch.tensor([[3.0, 1.0, 2.0]])
    keep_largest(scores, 1)
    assert scores.tolist() == [[3.0, 1.0, 2.0]]


@pytest.mark.parametrize("keep", [-1, 4])
def test_a_count_that_cannot_be_kept_is_refused(keep: int) -> None:
    with pytest.raises(UsageError, match=f"^keep={keep}: must be a count between 0 and 3$"):
        keep_largest(torch.ones(2, 3), keep)


def sorted_out(scores: Tensor, keep: Tensor) -> Tensor:
    """The definition by a stable sort, NaN first; slow, and the same on every device."""
    order = scores.argsort(dim=-1, descending=True, stable=True)
    rank = order.argsort(dim=-1)
    return rank < keep.expand(scores.shape[:-1])[..., None]


@given(scores_and_counts(), st.sampled_from([torch.float32, torch.float64]))
def test_the_shortcut_is_a_stable_sort_in_both_precisions(
    case: tuple[Tensor, Tensor], dtype: torch.dtype
) -> None:
    scores, count = case[0].to(dtype), case[1]
    assert torch.equal(keep_largest(scores, count), sorted_out(scores, count))


def test_long_rows_with_many_equals_are_sorted_out_exactly() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 9, (4, 5, 3, 200), generator=generator).float()
    keep = torch.tensor([1, 60, 140, 200])[:, None, None]  # one count a run, as in training
    kept = keep_largest(scores, keep)
    assert torch.equal(kept, sorted_out(scores, keep))
    assert torch.equal(kept.sum(dim=-1), keep.expand(4, 5, 3))


# long enough, and together enough, that thresholds are found by counting and not by sorting
@pytest.mark.parametrize("shape", [(40, 3001), (1, 150_000)])
@pytest.mark.parametrize("kind", ["different", "ties", "zeros", "all equal", "signs", "nan"])
def test_thresholds_found_by_counting_are_those_of_a_stable_sort(
    shape: tuple[int, int], kind: str
) -> None:
    assert shape[1] >= masks.LONG and shape[0] * shape[1] >= masks.MANY
    generator = torch.Generator().manual_seed(shape[0])
    scores = torch.randn(shape, generator=generator)
    if kind == "ties":
        scores = (4 * scores).round()
    elif kind == "zeros":
        scores = torch.where(torch.rand(shape, generator=generator) < 0.6, 0.0, scores.abs())
    elif kind == "all equal":
        scores = torch.full(shape, -2.5)
    elif kind == "nan":
        scores[:, ::7], scores[:, 1::500] = math.nan, -math.inf
    width = shape[1]
    for keep in (0, 1, width // 2, width - 1, width):
        kept = keep_largest(scores, keep)
        assert torch.equal(kept, sorted_out(scores, torch.tensor(keep)))
    each = torch.randint(0, width + 1, shape[:1], generator=generator)
    assert torch.equal(keep_largest(scores, each), sorted_out(scores, each))


def test_long_rows_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.randn(1, 200_000, generator=torch.Generator().manual_seed(5)).abs()
    expected = sorted_out(scores, torch.tensor(70_000))
    longest = 0

    def ordered(ranks: Tensor) -> Tensor:
        nonlocal longest
        longest = max(longest, ranks.shape[-1])
        return ranks.sort(dim=-1).values

    monkeypatch.setattr(masks, "_ordered", ordered)
    assert torch.equal(keep_largest(scores, 70_000), expected)
    assert longest < 20_000  # only what lay between two limits


@given(scores_and_counts(), st.booleans())
def test_a_device_that_is_not_waited_for_chooses_the_same(
    case: tuple[Tensor, Tensor], one: bool
) -> None:
    scores, count = case
    number = int(count[0]) if one else None
    count = torch.full_like(count, number) if number is not None else count
    kept = masks._without_asking(masks._ranks(scores), count, number)
    assert torch.equal(kept, sorted_out(scores, count))


@given(scores_and_counts(), st.integers(0, 2**31 - 1))
def test_a_long_row_that_is_not_waited_for_is_searched_byte_by_byte(
    case: tuple[Tensor, Tensor], flipped: int
) -> None:
    row = case[0].reshape(1, -1)
    if not row.shape[1]:
        return
    count = 1 + flipped % row.shape[1]
    # ranks as scores have them, and such that use all bits
    ranks = masks._ranks(row)
    for these in (ranks, ranks ^ flipped) if ranks.dtype == torch.int32 else ():
        last = these.sort(dim=1, descending=True).values[0, count - 1]
        assert masks._digit_by_digit(these.flatten(), count).tolist() == [int(last)]


@pytest.mark.parametrize("width", [1, 2, 4, masks.SHORTEST, masks.SHORTEST + 1])
def test_very_short_rows_are_compared_and_not_sorted(width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    scores = torch.randint(-2, 3, (7, 50, width), generator=generator).float()
    keep = torch.randint(0, width + 1, (7, 1), generator=generator)
    assert torch.equal(keep_largest(scores, keep), sorted_out(scores, keep))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_short_floats_are_ranked_too(dtype: torch.dtype) -> None:
    scores = torch.tensor([[0.5, 2.0, 1.0, 2.0]], dtype=dtype)
    assert keep_largest(scores, 1).tolist() == [[False, True, False, False]]
    assert project_largest(-scores, 2).tolist() == [[0.0, -2.0, 0.0, -2.0]]


# a NaN that was pruned away would make a run that went wrong look healthy
@given(tables(st.sampled_from([math.nan, 0.0, 1.0, 2.0, math.inf])), st.data())
def test_nan_counts_as_the_largest(scores: Tensor, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, scores.shape[1]))
    kept = keep_largest(scores, count)
    assert torch.equal(kept.sum(dim=1), torch.full((len(scores),), count))
    assert torch.equal(kept, sorted_out(scores, torch.tensor(count)))
    lost = scores.isnan()
    assert torch.equal((kept & lost).sum(dim=1), lost.sum(dim=1).clamp(max=count))


# -------------------------------------------------------------------------------------- projections


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
