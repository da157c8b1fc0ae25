"""Draws have the laws they claim: uniforms, normals, signs, integers, also scaled and in views."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from drawn_cells import CELLS, LEAST_P, SIGMAS, correlation, drawn
from scipy import stats
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.normals import (
    MULTIPLIER_1,
    MULTIPLIER_2,
    by_torch,
    normal_pairs,
    signed,
    words,
)
from rarefy.core.rng import Draws

pytestmark = pytest.mark.usefixtures("drawn_by_numpy")


def test_uniform_law() -> None:
    u = Draws([CELLS[4]]).uniform("s", (1 << 20,))[0].double().numpy()
    assert stats.kstest(u, "uniform").pvalue > LEAST_P
    n = len(u)
    assert abs(u.mean() - 1 / 2) < SIGMAS * math.sqrt(1 / 12 / n)
    assert abs(u.var() - 1 / 12) < SIGMAS * math.sqrt(1 / 180 / n)


def test_uniform_is_never_0_or_1_not_even_at_the_ends_of_itswords(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    u = Draws(CELLS[:4]).uniform("s", (1 << 20,))
    assert torch.isfinite(u).all() and 0 < u.min() < 1e-5 and 1 - 1e-5 < u.max() < 1
    ends = torch.tensor([[0, -1, 1 << 62, -(1 << 63), (1 << 63) - 1]])
    monkeypatch.setattr(Draws, "_bits", lambda *_: ends)
    for dtype in (torch.float32, torch.float64):
        u = Draws([0], dtype=dtype).uniform("s", (5,))
        assert ((u > 0) & (u < 1)).all()
        assert u[0, 3] == pytest.approx(0.5, abs=1e-7)


def test_normal_law() -> None:
    z = Draws([CELLS[5]]).normal("s", (1 << 20,))[0].double().numpy()
    n = len(z)
    assert stats.kstest(z, "norm").pvalue > LEAST_P
    # variances of the first four sample moments of a standard normal: 1, 2, 15, 96 (over n)
    for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - expected) < SIGMAS * math.sqrt(variance / n), power


def test_normal_tails() -> None:
    z = Draws(CELLS[:8]).normal("tails", (1 << 19,)).abs()
    assert torch.isfinite(z).all()
    for level in (3.0, 4.0, 5.0):
        expected = z.numel() * 2 * stats.norm.sf(level)
        low, high = stats.poisson.ppf([1e-6, 1 - 1e-6], expected)
        assert low <= int((z > level).sum()) <= high, level
    assert z.max() < 7  # the radius has 32 bits: sqrt(66 log 2) = 6.76


def test_normals_at_the_ends_of_the_words_are_finite() -> None:
    ends = torch.tensor([0, -1, -(1 << 32), (1 << 32) - 1, -(1 << 63), (1 << 63) - 1])
    start = torch.tensor([signed(unmixed(end)) for end in ends.tolist()])
    one = torch.ones(len(ends))
    assert torch.equal(words(start, one.long(), 1)[:, 0], ends)
    for z in (
        by_torch(start, one.long(), one, (1,), None),
        normal_pairs(start, one.long(), one, (1,), None, compile_kernels=False),
        normal_pairs(start, one.long(), one, (1,), None, compile_kernels=True),
    ):
        assert torch.isfinite(z).all() and z.abs().max() < 7
        # word 0: the smallest radius word, so the longest vector
        assert z[0].norm() == pytest.approx(math.sqrt(66 * math.log(2)), rel=1e-6)


def unmixed(word: int) -> int:
    """What SplitMix64's finaliser makes this word of."""
    found = word % 2**64
    for shift, multiplier in ((31, 1), (27, MULTIPLIER_2), (30, MULTIPLIER_1)):
        found = found * pow(multiplier, -1, 2**64) % 2**64
        found ^= found >> shift ^ found >> 2 * shift
    return found


def test_the_transform_is_box_and_mullers_to_float32() -> None:
    """Against the textbook formula in float64, on the same words."""
    draws = Draws([CELLS[6]])
    count = 100_000
    word = words(*draws._origin("s", 0), count)[0].numpy().view(np.uint64)
    # the upper 32 bits reach the radius as a float32
    upper = (word >> np.uint64(32)).astype(np.float32).astype(np.float64) + 0.5
    radius = np.sqrt(-2 * np.log(np.minimum(upper / 2.0**32, 1.0)))
    plane = draws.normal("s", (2, count))[0].double().numpy()
    length = np.hypot(*plane)
    # -2 log u is a difference of numbers up to 44, each rounded to float32: 44 * 2^-24 = 2.6e-6
    np.testing.assert_allclose(length**2, radius**2, rtol=1e-6, atol=5e-6)
    turn = ((word >> np.uint64(8)) & np.uint64(0xFFFFFF)).astype(np.float64) + 0.5
    angle = turn * 2.0**-24 * (np.pi / 2) - np.pi / 4
    smaller = np.abs(plane).min(axis=0) / length
    np.testing.assert_allclose(smaller, np.abs(np.sin(angle)), atol=1e-6)


def test_sign_law() -> None:
    s = Draws([CELLS[7]]).sign("s", (1 << 20,))[0].double()
    assert set(s.unique().tolist()) == {-1.0, 1.0}
    assert abs(float(s.mean())) < SIGMAS / math.sqrt(len(s))


@pytest.mark.parametrize("high", [1, 2, 3, 7, 100])
def test_integers_law(high: int) -> None:
    found = Draws([CELLS[8]]).integers("s", high, (1 << 18,))[0]
    assert found.dtype == torch.int64
    counts = torch.bincount(found, minlength=high).numpy()
    assert len(counts) == high
    if high > 1:
        assert stats.chisquare(counts).pvalue > LEAST_P


def test_integers_reach_the_largest_range_without_overflow() -> None:
    found = Draws(CELLS).integers("s", 2**31, (1000,)).double().numpy().ravel() / 2**31
    assert found.min() >= 0 and found.max() < 1
    assert stats.kstest(found, "uniform").pvalue > LEAST_P


@pytest.mark.parametrize("high", [0, -3, 2**31 + 1, 2**40])
def test_integers_refuse_a_range_they_cannot_draw(high: int) -> None:
    with pytest.raises(UsageError, match=rf"high={high}: must be in 1"):
        Draws([0]).integers("s", high, (1,))


def test_scale_multiplies_each_run_by_its_own_number() -> None:
    draws = Draws(CELLS[:4])
    scale = torch.tensor([0.0, 0.5, 1.0, 3.7])
    plain = draws.normal("s", (2, 11))
    scaled = draws.normal("s", (2, 11), scale=scale)
    assert torch.equal(scaled[0], torch.zeros(2, 11)) and torch.equal(scaled[2], plain[2])
    torch.testing.assert_close(scaled, plain * scale[:, None, None], rtol=3e-7, atol=0)


def test_a_float64_scale_gives_the_same_draws_in_both_dtypes() -> None:
    scale = torch.tensor([0.03, 0.1], dtype=torch.float64)
    single = Draws(CELLS[:2]).normal("s", (9,), scale=scale.float())
    double = Draws(CELLS[:2], dtype=torch.float64).normal("s", (9,), scale=scale)
    assert torch.equal(single.double(), double)


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_views_are_the_normals_of_their_shape_plus_what_they_are_shifted_by(
    dtype: torch.dtype, views: int
) -> None:
    draws = Draws(CELLS[:3], dtype=dtype)
    scale = torch.tensor([0.5, 1.0, 2.0], dtype=dtype)
    shape = (3, 5, 3)  # an odd number: pairs run across the views
    offset = draws.normal("offset", (views, 3, 1, 3))
    found = draws.normal_views("s", shape, 6, scale, offset)
    plain = draws.normal("s", (2, *shape), 6, scale)
    assert found.shape == (3, 2, *shape) and found.dtype == dtype
    assert torch.equal(found, plain + offset)


def test_signs_with_a_chance_have_it_and_are_symmetric() -> None:
    n = 1 << 18
    chance = torch.tensor([1.0, 0.3, 0.01])
    found = Draws([CELLS[9]]).sign_with_chance("s", chance[:, None], (3, n), 0)[0]
    assert set(found.unique().tolist()) == {-1.0, 0.0, 1.0}
    present = found.abs().sum(dim=1).numpy()
    low, high = (stats.binom.ppf(q, n, chance.numpy()) for q in (1e-6, 1 - 1e-6))
    assert ((present >= low) & (present <= high)).all()
    assert (found.sum(dim=1).numpy() ** 2 < SIGMAS**2 * present).all()
    # whether it is there and which sign it has do not know each other, nor do neighbours
    strong = found[1]
    bound = SIGMAS / math.sqrt(n)
    assert abs(correlation(strong[1:], strong[:-1])) < bound
    assert abs(correlation(strong[1:].abs(), strong[:-1].abs())) < bound


def test_a_sign_of_chance_1_is_always_there_even_at_the_end_of_thewords(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = torch.tensor([[0, -1, -2, -(1 << 63), (1 << 63) - 1]])
    monkeypatch.setattr(Draws, "_bits", lambda *_: ends)
    found = Draws([0]).sign_with_chance("s", torch.ones(1), (5,), 0)
    assert found.tolist() == [[1.0, -1.0, 1.0, 1.0, -1.0]]
    assert not Draws([0]).sign_with_chance("s", torch.zeros(1), (5,), 0).any()


# ------------------------------------------------------------------------------------- independence


MANY = 1 << 17
DIFFERENCES = (
    "stream",
    "step",
    "late step",
    "cell",
    "cell with the next key",
    "cell whose key differs in one high bit",
    "spawn",
    "two spawns",
    "spawn of a spawn",
)


@cache
def differing() -> dict[str, tuple[Tensor, Tensor]]:
    """Pairs of draws that differ in one thing only."""
    one = Draws([CELLS[0]])
    base = one.normal("s", (MANY,))
    neighbours = Draws([0, 1, 1 << 62])
    near = neighbours.normal("s", (MANY,))
    return {
        "stream": (base, one.normal("t", (MANY,))),
        "step": (base, one.normal("s", (MANY,), step=1)),
        "late step": (one.normal("s", (MANY,), step=9_999), one.normal("s", (MANY,), step=10_000)),
        "cell": (base, Draws([CELLS[1]]).normal("s", (MANY,))),
        "cell with the next key": (near[0], near[1]),
        "cell whose key differs in one high bit": (near[0], near[2]),
        "spawn": (base, one.spawn("x").normal("s", (MANY,))),
        "two spawns": (
            one.spawn("x").normal("s", (MANY,)),
            one.spawn("y").normal("s", (MANY,)),
        ),
        "spawn of a spawn": (
            one.spawn("x").normal("s", (MANY,)),
            one.spawn("x").spawn("x").normal("s", (MANY,)),
        ),
    }


@pytest.mark.parametrize("what", DIFFERENCES)
def test_what_differs_in_one_thing_is_independent(what: str) -> None:
    first, second = differing()[what]
    bound = SIGMAS / math.sqrt(MANY)
    assert abs(correlation(first, second)) < bound
    assert abs(correlation(first.square(), second.square())) < bound
    assert abs(correlation(first[..., 1:], second[..., :-1])) < bound


def test_spawning_leaves_the_draws_it_came_from_alone() -> None:
    draws = Draws(CELLS[:3])
    before = draws.uniform("s", (9,))
    other = draws.spawn("x")
    assert torch.equal(draws.uniform("s", (9,)), before)
    assert torch.equal(other.uniform("s", (9,)), Draws(CELLS[:3]).spawn("x").uniform("s", (9,)))


@pytest.mark.slow
def test_the_first_draw_of_a_hundred_thousand_neighbouring_cells_is_uniform() -> None:
    first = Draws(np.arange(100_000)).uniform("s", (2,)).numpy()
    assert stats.kstest(first[:, 0], "uniform").pvalue > LEAST_P
    assert abs(np.corrcoef(first.T)[0, 1]) < SIGMAS / math.sqrt(100_000)
    assert abs(np.corrcoef(first[1:, 0], first[:-1, 0])[0, 1]) < SIGMAS / math.sqrt(100_000)


@pytest.mark.parametrize("kind", ["uniform", "normal", "sign"])
def test_no_autocorrelation_within_a_stream(kind: str) -> None:
    row = drawn(Draws([CELLS[2]]), kind, (MANY,))[0]
    for lag in (1, 2, 3, 4, 7, 8, 64, 1024):
        bound = SIGMAS / math.sqrt(MANY - lag)
        assert abs(correlation(row[lag:], row[:-lag])) < bound, lag


def test_the_two_halves_of_a_pair_are_independent_normals() -> None:
    count = 1 << 19
    plane = Draws([CELLS[3]]).normal("s", (2, count))[0].double()
    bound = SIGMAS / math.sqrt(count)
    first, second = plane
    for power in (1, 2, 3):
        assert abs(correlation(first**power, second**power)) < bound, power
    assert abs(correlation(first, second.square())) < bound
    # the angle is uniform on the circle and independent of the radius
    angle = torch.atan2(second, first) / (2 * math.pi) + 0.5
    assert stats.kstest(angle.numpy(), "uniform").pvalue > LEAST_P
    assert abs(correlation(angle, plane.square().sum(dim=0))) < bound
    # and 12 x 12 cells of equal probability are hit equally often
    edges = stats.norm.ppf(np.linspace(0, 1, 13)[1:-1])
    table = np.zeros((12, 12))
    cell = tuple(np.searchsorted(edges, half.numpy()) for half in (first, second))
    np.add.at(table, cell, 1)
    assert stats.chisquare(table.ravel()).pvalue > LEAST_P
