"""Projections, cosines and the decomposition (12) on weights whose answer is known."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.data.sparse_coding import dictionary
from rarefy.measure.alignment import (
    growth_factor,
    inside_fraction,
    outside,
    projections,
    squared_cosines,
)

EXACT = 1e-12


def case(
    seed: int = 0, runs: int = 2, m: int = 4, d1: int = 7, d: int = 3
) -> tuple[Tensor, Tensor]:
    draws = Draws([key("alignment", seed, run) for run in range(runs)], dtype=torch.float64)
    return draws.normal("w", (m, d1)), dictionary(draws, d1, d)


def test_projections_are_inner_products_with_the_features() -> None:
    weights, atoms = case()
    found = projections(weights, atoms)
    assert found.shape == (2, 4, 3)
    for run in range(2):
        for neuron in range(4):
            for feature in range(3):
                expected = float(weights[run, neuron] @ atoms[run, :, feature])
                assert float(found[run, neuron, feature]) == pytest.approx(expected, abs=EXACT)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_what_lies_outside_is_orthogonal_to_every_feature_and_the_parts_add_up(seed: int) -> None:
    weights, atoms = case(seed)
    rest = outside(weights, atoms)
    assert projections(rest, atoms).abs().max() < EXACT
    inside = projections(weights, atoms) @ atoms.transpose(1, 2)
    torch.testing.assert_close(inside + rest, weights, rtol=EXACT, atol=EXACT)
    energy = projections(weights, atoms).square().sum(dim=2) + rest.square().sum(dim=2)
    torch.testing.assert_close(energy, weights.square().sum(dim=2), rtol=EXACT, atol=EXACT)
    share = inside_fraction(weights, atoms)
    expected = 1 - rest.square().sum(dim=2) / weights.square().sum(dim=2)
    torch.testing.assert_close(share, expected, rtol=EXACT, atol=EXACT)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.floats(1e-6, 1e6))
def test_squared_cosines_lie_in_0_1_and_ignore_the_norm(seed: int, scale: float) -> None:
    weights, atoms = case(seed)
    found = squared_cosines(weights, atoms)
    assert (found >= 0).all() and (found.sum(dim=2) <= 1 + EXACT).all()
    torch.testing.assert_close(squared_cosines(-scale * weights, atoms), found)


def test_a_neuron_on_a_feature_has_cosine_1_with_it_and_0_with_the_others() -> None:
    _, atoms = case()
    found = squared_cosines(3 * atoms.transpose(1, 2), atoms)
    torch.testing.assert_close(found, torch.eye(3, dtype=torch.float64).expand(2, -1, -1))


def test_a_neuron_between_two_features_has_half_of_each() -> None:
    _, atoms = case()
    between = (atoms[:, :, 0] - atoms[:, :, 2])[:, None, :]
    found = squared_cosines(between, atoms)[:, 0]
    assert found[0].tolist() == pytest.approx([0.5, 0.0, 0.5])


def test_a_neuron_of_norm_0_has_cosine_0() -> None:
    _, atoms = case()
    nothing = torch.zeros(2, 1, 7, dtype=torch.float64)
    assert not squared_cosines(nothing, atoms).any()
    assert not inside_fraction(nothing, atoms).any()


def test_a_random_neuron_has_squared_cosine_1_over_d1_on_average() -> None:
    draws = Draws([key("random", run) for run in range(20)])
    atoms, weights = dictionary(draws, 50, 9), draws.normal("w", (200, 50))
    found = squared_cosines(weights, atoms)
    # Beta(1/2, 49/2): variance 2 (d1-1)/(d1^2 (d1+2)); 36,000 nearly independent entries
    error = math.sqrt(2 * 49 / (2500 * 52) / found.numel())
    assert float(found.mean()) == pytest.approx(1 / 50, abs=5 * error)


def test_growth_is_recovered_exactly_without_noise_and_without_bias_with_it() -> None:
    generator = torch.Generator().manual_seed(0)
    before = torch.randn(2, 40, 3, generator=generator, dtype=torch.float64)
    rate = torch.tensor([1.1, 0.9, 2.0], dtype=torch.float64)
    found = growth_factor(before, rate * before, dim=1)
    torch.testing.assert_close(found, rate.expand(2, -1), rtol=EXACT, atol=0)
    # noise as large as the signal: the mean of many estimates is still the factor
    many = before[:1].expand(4000, -1, -1)
    noise = torch.randn(4000, 40, 3, generator=generator, dtype=torch.float64)
    estimates = growth_factor(many, rate * many + noise, dim=1)
    error = 1 / before[0].square().sum(dim=0).sqrt() / math.sqrt(4000)
    assert ((estimates.mean(dim=0) - rate).abs() < 5 * error).all()


def test_growth_over_several_axes_pools_them() -> None:
    before = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    assert growth_factor(before, 3 * before, dim=(1, 2)).tolist() == pytest.approx([3.0])
