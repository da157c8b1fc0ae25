"""Draws that differ in one thing, and the numbers of one draw, are independent."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from drawn_cells import CELLS, LEAST_P, SIGMAS, correlation, drawn
from scipy import stats
from torch import Tensor

from rarefy.core.rng import Draws

pytestmark = pytest.mark.usefixtures("drawn_by_numpy")

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
