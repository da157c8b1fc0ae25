"""The score of a neuron, and how many stay of a share."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.pruning.masks import keep_largest, kept_count, neuron_norms

# few different values, so that most scores are equal to some other one; both zeros, both infinities
TIED = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, -1.0, 1e-308, math.inf, -math.inf])
ANY = st.floats(allow_nan=False, width=64)


# -------------------------------------------------------------------------------------------- norms


def test_the_score_of_a_neuron_is_its_euclidean_norm() -> None:
    weights = torch.tensor([[[3.0, -4.0], [0.0, 0.0]], [[-1.0, 0.0], [5.0, 12.0]]])
    assert neuron_norms(weights).tolist() == [[5.0, 0.0], [1.0, 13.0]]
    assert neuron_norms(torch.ones(2, 3, 4, 9)).tolist() == [[[3.0] * 4] * 3] * 2


def test_the_sign_and_direction_of_a_neuron_do_not_matter_its_length_does() -> None:
    weights = torch.tensor([[[0.9, 0.9], [0.0, -1.3], [1.2, 0.0]]])  # norms 1.27, 1.3, 1.2
    assert keep_largest(neuron_norms(weights), 1).tolist() == [[False, True, False]]
    assert keep_largest(neuron_norms(weights), 2).tolist() == [[True, True, False]]


# ------------------------------------------------------------------------- how many stay of a share


@given(candidates=st.integers(1, 60), share=st.fractions(0, 1, max_denominator=128))
def test_the_pruned_number_is_the_nearest_whole_one(candidates: int, share: Fraction) -> None:
    number = kept_count(torch.tensor([float(share)], dtype=torch.float64), candidates)
    assert number.dtype == torch.int64 and number.shape == (1,)
    exact = share * candidates
    if exact % 1 == Fraction(1, 2) and Fraction(float(share)) != share:
        return  # a half that a float cannot hold: see the tests of halves below
    assert int(number) == max(1, candidates - math.floor(exact + Fraction(1, 2)))


@pytest.mark.parametrize(
    ("share", "candidates", "stay"),
    [
        (0.0, 24, 24),
        (0.5, 1, 1),  # 0.5 would prune the only one
        (0.5, 3, 1),  # 1.5: 2 go
        (0.25, 2, 1),  # 0.5: 1 goes
        (0.125, 4, 3),
        (0.124, 4, 4),
        (0.0625, 24, 22),  # 1.5: 2 go
        (0.3, 24, 17),  # 7.2: 7 go
        (0.9, 24, 2),  # 21.6: 22 go
        (0.99, 24, 1),  # 23.76 would prune all
        (1.0, 24, 1),
    ],
)
def test_a_half_is_rounded_up_and_one_always_stays(
    share: float, candidates: int, stay: int
) -> None:
    assert kept_count(torch.tensor([share]), candidates).tolist() == [stay]


def test_each_run_has_its_own_share() -> None:
    share = torch.tensor([0.0, 0.25, 0.5, 0.75])
    assert kept_count(share, 8).tolist() == [8, 6, 4, 2]


def test_a_larger_share_never_keeps_more() -> None:
    stay = kept_count(torch.linspace(0, 1, 1001, dtype=torch.float64), 24)
    assert (stay.diff() <= 0).all() and stay[0] == 24 and stay[-1] == 1
    assert set(stay.tolist()) == set(range(1, 25))


def test_a_half_of_a_decimal_share_is_rounded_up_in_every_dtype() -> None:
    wrong = []
    for dtype in (torch.float32, torch.float64):
        for candidates in range(1, 61):
            for hundredths in range(100):
                exact = Fraction(hundredths, 100) * candidates
                expected = max(1, candidates - math.floor(exact + Fraction(1, 2)))
                share = torch.tensor([hundredths / 100], dtype=dtype)
                if int(kept_count(share, candidates)) != expected:
                    wrong.append((dtype, hundredths / 100, candidates))
    assert not wrong
