"""Eigenvalues for a wanted Gamma (003 Sec. 5.1): round trip, the end of the range, refusals.

"Met" means a relative error under 1e-9 (float64 gives about 1e-15), the solver's own promise.
"""

from __future__ import annotations

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_noise import eigenvalues_for, least_ratio

from rarefy.core.errors import UsageError
from rarefy.data.noise_ratio import RESIDUAL, smallest_gamma
from rarefy.data.noise_structure import gram, homogeneous, noise_correlation_ratio
from rarefy.data.patches import labels_by_size


def test_the_papers_grid_has_all_ratios_equal_to_the_wanted_one() -> None:
    # 003 Fig. 3: K = 5, d = 1000, Gamma from 1 to 1400, equal sizes
    wanted = torch.linspace(1, 1400, 100, dtype=torch.float64)
    table = eigenvalues_for(wanted, 100, 1000, 5)
    assert table.shape == (100, 5, 1000)
    ratio = noise_correlation_ratio(gram(table), torch.full((1, 5), 100))
    off = ~torch.eye(5, dtype=torch.bool)
    assert (ratio[:, off] / wanted[:, None] - 1).abs().max() < RESIDUAL
    # all but one of the d - K non-zero eigenvalues are 0.5
    assert bool(((table == 0.5).sum(dim=2)[1:] == 994).all())
    assert torch.equal(table[0], 0.5 * homogeneous(1000, 5)[0])
    special = table[:, 0].amax(dim=1)
    assert bool((special.diff() > 0).all())


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=2, max_size=5),
    extra=st.integers(0, 40),
    above=st.floats(1e-6, 1e4),
    base=st.floats(0.01, 10),
)
def test_round_trip_for_unequal_sizes(
    sizes: list[int], extra: int, above: float, base: float
) -> None:
    classes = len(sizes)
    d = 2 * classes + extra
    first, second = sorted(sizes, reverse=True)[:2]
    wanted = first / second * (1 + above)  # homogeneous noise has first / second: reachable
    table = eigenvalues_for(wanted, sizes, d, classes, base)
    found = least_ratio(table, torch.tensor([sizes]))
    assert (found / wanted - 1).abs().max() < RESIDUAL
    assert bool(((table > 0).sum(dim=2) == d - classes).all())


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=2, max_size=5),
    rank=st.integers(2, 9),
    above=st.floats(1e-6, 1e4),
)
def test_round_trip_with_own_directions_and_low_rank(
    sizes: list[int], rank: int, above: float
) -> None:
    classes = len(sizes)
    first, second = sorted(sizes, reverse=True)[:2]
    wanted = first / second * (1 + above)
    d = 2 * classes + rank
    table = eigenvalues_for(wanted, sizes, d, classes, rank=rank, own=True)
    assert (least_ratio(table, torch.tensor([sizes])) / wanted - 1).abs().max() < RESIDUAL
    assert bool(((table > 0).sum(dim=2) == rank).all())
    if rank < classes:
        assert torch.equal(table, eigenvalues_for(wanted, sizes, d, classes, rank=rank))


def test_runs_may_differ_in_gamma_and_in_sizes_and_each_is_as_if_alone() -> None:
    wanted = torch.tensor([8.0, 20.0, 90.0], dtype=torch.float64)
    sizes = torch.tensor([[10, 20, 40], [30, 30, 10], [5, 5, 60]])
    table = eigenvalues_for(wanted, sizes, 20, 3, rank=9)
    assert (least_ratio(table, sizes) / wanted[:, None] - 1).abs().max() < RESIDUAL
    for run in range(3):
        alone = eigenvalues_for(wanted[run].item(), sizes[run], 20, 3, rank=9)
        torch.testing.assert_close(table[run : run + 1], alone, rtol=1e-9, atol=0)
    shared = eigenvalues_for(wanted, [10, 20, 40], 20, 3, rank=9)
    torch.testing.assert_close(shared[:1], table[:1], rtol=1e-9, atol=0)
    labels = labels_by_size(sizes[:1])
    assert labels.shape == (1, 70)  # the sizes are those of a training set


def test_nearly_equal_sizes_have_nearly_the_closed_form() -> None:
    # two ways to solve: the closed form where sizes are equal, the fixed point where they are not
    equal = eigenvalues_for(1.5, [1000, 1000, 1000], 50, 3)
    nearly = eigenvalues_for(1.5, [100000, 100001, 100000], 50, 3)
    torch.testing.assert_close(equal, nearly, rtol=1e-3, atol=0)
    assert not torch.equal(equal, nearly)


def test_the_smallest_ratio_is_the_true_minimum_for_two_classes() -> None:
    # s_1 (r-1+x_1^2) = s_2 (r-1+x_2^2) s_2/s_1 leaves one unknown: scan it
    for small, large, rank in ((10, 100, 995), (10, 100, 10), (90, 100, 50), (1, 300, 2)):
        rho = large / small
        x = torch.logspace(-4, 4, 400_001, dtype=torch.float64)
        other = ((rho**2 - 1) * (rank - 1) + rho**2 * x.square()).sqrt()
        scanned = (rho * (rank - 1 + x.square()) / (rank - 2 + x + other)).min().item()
        found = smallest_gamma(torch.tensor([[small, large]], dtype=torch.float64), rank)
        assert found == pytest.approx(scanned, rel=1e-6)
        assert 1 < found < rho


@settings(deadline=None, max_examples=15)
@given(sizes=st.lists(st.integers(1, 100), min_size=2, max_size=4), rank=st.integers(4, 60))
def test_no_table_of_the_family_is_below_the_smallest_ratio(sizes: list[int], rank: int) -> None:
    classes = len(sizes)
    amount = torch.tensor([sizes], dtype=torch.float64)
    least = smallest_gamma(amount, rank)
    assert least >= 1
    # max over classes of the least ratio: no x does better, so none has all of them there
    grid = torch.logspace(-2, 2, {2: 200, 3: 40, 4: 15}[classes], dtype=torch.float64)
    x = torch.cartesian_prod(*[grid] * classes)
    ratio = (rank - 1 + x.square())[:, :, None] / (rank - 2 + x[:, :, None] + x[:, None, :])
    ratio = ratio * amount[:, :, None] / amount[:, None, :]
    ratio.diagonal(dim1=1, dim2=2).fill_(math.inf)
    worst = ratio.amin(dim=2).amax(dim=1).min().item()
    assert worst >= least * (1 - 1e-6)


@pytest.mark.parametrize("sizes", [[10, 100], [3, 50, 50, 80], [100, 99, 98]])
def test_the_end_of_the_range_in_the_message_can_be_asked_for(sizes: list[int]) -> None:
    classes = len(sizes)
    with pytest.raises(
        UsageError, match=r"^gamma=1.0: .* reachable range is \[.*, inf\)$"
    ) as error:
        eigenvalues_for(1.0, sizes, 60, classes)
    text = str(error.value)
    assert f"with rank {60 - classes} and class sizes {sizes}" in text
    found = re.search(r"\[([0-9.]+), inf\)$", text)
    assert found is not None
    end = float(found[1])
    table = eigenvalues_for(end, sizes, 60, classes)
    assert (least_ratio(table, torch.tensor([sizes])) / end - 1).abs().max() < RESIDUAL
    with pytest.raises(UsageError, match="^gamma="):
        eigenvalues_for(end * (1 - 1e-4), sizes, 60, classes)


@pytest.mark.parametrize(
    ("gamma", "sizes", "rank", "message"),
    [
        (0.999, 10, 6, r"gamma=0.999: with rank 6 and class sizes \[10, 10, .* is \[1, inf\)"),
        (-1.0, 10, 6, r"gamma=-1.0: .* is \[1, inf\)"),
        (math.nan, 10, 6, r"gamma=nan: .* is \[1, inf\)"),
        (math.inf, 10, 6, r"gamma=inf: .* is \[1, inf\)"),
        (1.0, 10, 2, r"gamma=1.0: with rank 2 and class sizes .* is \(1, inf\)"),
        (2.5, [10, 10, 30], 2, r"gamma=2.5: with rank 2 and class sizes .* is \(3, inf\)"),
        (2.0, 10, 1, "rank=1: must be at least 2: otherwise every ratio is infinite"),
        (2.0, 10, 8, "rank=8: must be in 3..7 with 3 classes, d=10 and .*"),
        (2.0, [10, 0, 5], 6, "class_sizes=0.0: every class needs at least 1 sample"),
        (2.0, [10, 5], 6, r"class_sizes=\(1, 2\): must be \(group, 3\)"),
    ],
)
def test_ratios_out_of_reach_are_refused_with_the_range(
    gamma: float, sizes: int | list[int], rank: int, message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{message}$") as error:
        eigenvalues_for(gamma, sizes, 10, 3, rank=rank)
    assert "\n" not in str(error.value)


def test_gammas_and_sizes_must_agree_on_the_runs() -> None:
    with pytest.raises(UsageError, match="^gamma=2: needs one value for each of 3 rows of sizes$"):
        eigenvalues_for(torch.tensor([2.0, 3.0]), torch.ones(3, 2), 10, 2)
