"""Sets of neurons: by hand, by their exact probabilities, and where the paper's sets are empty."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.measure.neurons import aligned_counts, carried, dominant, lucky, ordinary

GAMMA = 0.001


def neurons(*squares: dict[int, float], d: int) -> Tensor:
    """One run; each neuron by the squares of its projections, all else 0; signs alternate."""
    rows = torch.zeros(1, len(squares), d, dtype=torch.float64)
    for place, given_squares in enumerate(squares):
        for feature, square in given_squares.items():
            rows[0, place, feature] = (-1) ** place * math.sqrt(square)
    return rows


def ratio(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def members(found: Tensor) -> list[set[int]]:
    """For each neuron of the one run, the features in whose set it is."""
    return [set(row.nonzero()[:, 0].tolist()) for row in found[0]]


# --------------------------------------------------------------------------------- the paper's sets


def test_the_papers_sets_by_hand() -> None:
    # d = 64, ratio 1/2: thresholds c1 log d/d = 8.008 * 0.06498 = 0.520, c2 log d/d = 0.0325
    along = neurons(
        {5: 0.60, 6: 0.40},  # two strong features: ordinary in both, lucky in none
        {5: 0.97, 6: 0.03},  # one strong, the other below c2: lucky
        {5: 0.96, 6: 0.04},  # the other just above c2: not lucky
        {0: 0.50, **dict.fromkeys(range(1, 21), 0.025)},  # strong, but below c1
        {0: 0.53, **dict.fromkeys(range(1, 21), 0.0235)},  # above c1, all others below c2
        dict.fromkeys(range(64), 1 / 64),  # spread evenly: in no set
        d=64,
    )
    assert members(ordinary(along, ratio(0.5))) == [{5, 6}, {5}, {5, 6}, {0}, {0}, set()]
    assert members(lucky(along, ratio(0.5))) == [set(), {5}, set(), set(), {0}, set()]
    # the sets do not depend on a neuron's length, only on its direction in the feature space
    scaled = along * torch.tensor([1e-3, 5.0, 1e3, 2.0, 0.1, 7.0])[None, :, None]
    assert torch.equal(lucky(scaled, ratio(0.5)), lucky(along, ratio(0.5)))


def test_at_d_9_the_lucky_sets_are_empty_below_a_ratio_of_0_70() -> None:
    """c1 log d/d > 1 there: not even a neuron that lies on a feature is lucky (claims.md)."""
    on_a_feature = neurons({3: 1.0}, d=9)
    for value in (0.1, 0.5, 0.69, 0.699):
        assert not lucky(on_a_feature, ratio(value)).any(), value
    for value in (0.70, 0.75, 0.9, 1.0):
        assert members(lucky(on_a_feature, ratio(value))) == [{3}], value
    # the edge is where 2 (1 + gamma) log(9)/9 = ratio^2
    edge = math.sqrt(2 * (1 + GAMMA) * math.log(9) / 9)
    assert edge == pytest.approx(0.699, abs=5e-4)
    assert not lucky(on_a_feature, ratio(edge - 1e-9)).any()
    assert lucky(on_a_feature, ratio(edge + 1e-9)).any()


def test_at_larger_d_they_are_not() -> None:
    assert members(lucky(neurons({3: 1.0}, d=64), ratio(0.5))) == [{3}]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.1, 1.0), st.integers(2, 40))
def test_lucky_neurons_are_ordinary_and_lucky_in_one_feature_only(
    seed: int, value: float, d: int
) -> None:
    # a cube pushes some neurons towards single features
    along = Draws([seed], dtype=torch.float64).normal("w", (200, d)) ** 3
    member, fortunate = ordinary(along, ratio(value)), lucky(along, ratio(value))
    assert (member | ~fortunate).all()
    assert fortunate.sum(dim=2).max() <= 1
    assert not (fortunate & (member.sum(dim=2, keepdim=True) > 1)).any()


def test_balance_shrinks_the_ordinary_sets_and_grows_the_lucky_ones() -> None:
    along = Draws([7], dtype=torch.float64).normal("w", (4000, 16)) ** 3
    ratios = (0.4, 0.6, 0.8, 1.0)
    in_any = [int(ordinary(along, ratio(r)).sum()) for r in ratios]
    fortunate = [int(lucky(along, ratio(r)).sum()) for r in ratios]
    assert in_any == sorted(in_any, reverse=True) and fortunate == sorted(fortunate)
    assert in_any[0] > in_any[-1] > 0 and fortunate[-1] > fortunate[0]


def test_each_run_has_its_own_ratio() -> None:
    along = neurons({3: 1.0}, d=9).expand(2, -1, -1)
    assert lucky(along, ratio(0.5, 0.9)).sum(dim=(1, 2)).tolist() == [0, 1]


def test_a_neuron_without_any_projection_is_in_no_set() -> None:
    nothing = torch.zeros(1, 2, 9)
    assert not ordinary(nothing, ratio(0.5)).any() and not lucky(nothing, ratio(1.0)).any()


@pytest.mark.parametrize(("d", "value"), [(9, 1.0), (9, 0.3), (64, 0.8), (64, 1.0)])
def test_counts_at_initialisation_have_their_exact_probability(d: int, value: float) -> None:
    """One squared coordinate of a random direction is Beta(1/2, (d-1)/2)."""
    runs, m = 20, 500
    along = Draws([key("start", d, value, run) for run in range(runs)]).normal("w", (m, d))
    count = int(ordinary(along, ratio(value).float().expand(runs)).sum())
    c2 = 2 * (1 - GAMMA) * value**2
    chance = stats.beta.sf(c2 * math.log(d) / d, 0.5, (d - 1) / 2)
    n = runs * m
    # features of one neuron exclude each other, so the binomial variance is an upper bound
    error = math.sqrt(n * d * chance * (1 - chance))
    assert abs(count - n * d * chance) < 5 * error
    assert 5 * error < 0.2 * n * d * chance


@pytest.mark.parametrize(("d", "value"), [(9, 1.0), (9, 0.9), (64, 0.95)])
def test_lucky_counts_at_initialisation_are_those_of_another_implementation(
    d: int, value: float
) -> None:
    """Definition B.1 by sorting, on other random numbers; two binomial counts compared."""
    n = 100_000
    square = np.sort(np.random.default_rng(0).normal(size=(n, d)) ** 2, axis=1)
    whole = square.sum(axis=1) * math.log(d) / d
    high, low = 2 * (1 + GAMMA) / value**2 * whole, 2 * (1 - GAMMA) * value**2 * whole
    expected = np.mean((square[:, -1] >= high) & (square[:, -2] <= low))
    along = Draws([key("lucky", d, value, run) for run in range(20)]).normal("w", (n // 20, d))
    found = float(lucky(along, ratio(value).float().expand(20)).sum()) / n
    assert expected > 1e-3
    assert abs(found - expected) < 5 * math.sqrt(2 * expected / n)


# --------------------------------------------------------------------------------- operational sets


def test_dominant_needs_a_level_and_a_margin_over_the_second() -> None:
    cosines = torch.tensor(
        [
            [
                [0.50, 0.10, 0.00],  # clear
                [0.50, 0.13, 0.00],  # second above a quarter
                [0.08, 0.00, 0.00],  # below cosine 0.3
                [0.01, 0.02, 0.09],  # just at the level
                [0.40, 0.40, 0.00],  # a tie
                [0.00, 0.00, 0.00],
            ]
        ]
    )
    assert members(dominant(cosines)) == [{0}, set(), set(), {2}, set(), set()]
    assert members(dominant(cosines, floor=0.05, margin=3.0))[:3] == [{0}, {0}, {0}]


def test_with_one_feature_only_the_level_counts() -> None:
    assert dominant(torch.tensor([[[0.2], [0.05]]]))[0, :, 0].tolist() == [True, False]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_a_neuron_is_dominant_in_at_most_one_feature(seed: int, d: int) -> None:
    cosines = Draws([seed]).uniform("c", (50, d)) ** 4
    assert dominant(cosines).sum(dim=2).max() <= 1


def test_carried_features_hold_a_share_of_the_squared_norm() -> None:
    cosines = torch.tensor([[[0.5, 0.1, 0.09], [0.0, 0.0, 0.0]]])
    assert members(carried(cosines)) == [{0, 1}, set()]
    assert members(carried(cosines, share=0.2)) == [{0}, set()]


def test_aligned_counts_are_neurons_a_feature_above_a_cosine() -> None:
    cosines = torch.tensor([[[0.5, 0.0], [0.0901, 0.08], [0.0, 0.09001]]])  # squared
    assert aligned_counts(cosines).tolist() == [[2, 1]]
    assert aligned_counts(cosines, level=0.5).tolist() == [[1, 0]]
