"""The latents of 000's data: signs, presence, pairs (Assumptions 3.2, 3.4), and Definition 3.1."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from scipy import stats
from small_sparse_coding import SIGMAS, any_model, draws_of, model
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.data.sparse_coding import SPREADS, Pairs, frequencies

RARE = 1e-6
"""A two-sided bound on a count is missed with this probability an entry."""


def within_binomial(hits: Tensor, n: int, chance: Tensor) -> bool:
    low, high = (stats.binom.ppf(q, n, chance.double().numpy()) for q in (RARE / 2, 1 - RARE / 2))
    counted = hits.numpy()
    return bool(((counted >= low) & (counted <= high)).all())


def any_pairs(parts: tuple[str, int, int, float, int], samples: int = 40) -> Pairs:
    spread, tokens, d, activation, seed = parts
    draws = Draws([key("any", seed, run) for run in range(2)])
    eps = draws.uniform("eps", (d,)).clamp(min=0.05)
    data = model(draws, eps, d1=10, tokens=tokens, activation=activation, spread=spread)
    return data.sample(draws, samples, step=seed % 5)


# ---------------------------------------------------------------------- Assumption 3.2: the latents


@settings(deadline=None, max_examples=25)
@given(any_model)
def test_latents_are_minus_one_zero_or_one_with_one_sign_a_sample(
    parts: tuple[str, int, int, float, int],
) -> None:
    latents = any_pairs(parts).latents
    assert torch.isin(latents, torch.tensor([-1.0, 0.0, 1.0])).all()
    # tokens of a sample never disagree: the summed size is the size of the sum
    assert torch.equal(latents.sum(dim=3).abs(), latents.abs().sum(dim=3))


def test_signs_are_symmetric_and_independent_of_each_other() -> None:
    draws = draws_of(1, "signs")
    data = model(draws, torch.ones(1, 4), activation=1.0, spread="all")
    sign = data.latents(draws, 40_000, 0, views=1)[0, 0, :, 0].double()
    bound = SIGMAS / math.sqrt(len(sign))
    assert sign.mean(dim=0).abs().max() < bound
    products = sign.T @ sign / len(sign) - torch.eye(4)
    assert products.abs().max() < bound


@pytest.mark.parametrize("spread", SPREADS)
def test_a_feature_is_present_with_probability_activation_times_eps(spread: str) -> None:
    eps = torch.tensor([[1.0, 0.7, 0.3, 0.1, 0.02], [0.5, 0.5, 0.5, 0.25, 1.0]])
    draws, n = draws_of(2, "presence"), 20_000
    data = model(draws, eps, activation=0.4, spread=spread)
    latents = data.latents(draws, n, 0)
    present = latents.abs().amax(dim=3) > 0
    assert torch.equal(present[:, 0], present[:, 1])
    assert within_binomial(present[:, 0].sum(dim=1), n, 0.4 * eps)


def test_features_are_present_independently_of_each_other() -> None:
    draws, n = draws_of(1, "joint"), 40_000
    data = model(draws, torch.tensor([[1.0, 0.6, 0.2]]), activation=0.5)
    present = data.latents(draws, n, 0, views=1)[0, 0].abs().amax(dim=1).numpy()
    off_diagonal = np.corrcoef(present.T) - np.eye(3)
    assert np.abs(off_diagonal).max() < SIGMAS / math.sqrt(n)


def test_certain_features_are_always_present() -> None:
    draws = draws_of(1, "certain")
    data = model(draws, torch.ones(1, 3), activation=1.0)
    pairs = data.sample(draws, 5000, 0)
    assert pairs.present().all() and (pairs.signature() != 0).all()


# ------------------------------------------------------------------------ Assumption 3.4: the pairs


@settings(deadline=None, max_examples=25)
@given(any_model)
def test_a_pair_shares_support_and_sign_of_the_summed_latent(
    parts: tuple[str, int, int, float, int],
) -> None:
    pairs = any_pairs(parts)
    summed = pairs.latents.sum(dim=3)
    assert torch.equal(summed[:, 0].sign(), summed[:, 1].sign())
    assert torch.equal(pairs.signature(), summed[:, 0].sign())
    assert torch.equal(pairs.present(), summed[:, 1] != 0)


@pytest.mark.parametrize("spread", ["one", "subset"])
def test_the_tokens_that_show_a_feature_are_drawn_afresh_for_each_view(spread: str) -> None:
    draws, n = draws_of(1, "views"), 20_000
    data = model(draws, torch.ones(1, 1), activation=1.0, tokens=3, spread=spread)
    shown = data.latents(draws, n, 0)[0, ..., 0].abs().numpy()  # view, sample, token
    for token in range(3):
        between = np.corrcoef(shown[0, :, token], shown[1, :, token])[0, 1]
        assert abs(between) < SIGMAS / math.sqrt(n)


def test_different_samples_and_steps_are_independent() -> None:
    draws, n = draws_of(1, "negatives"), 40_000
    data = model(draws, torch.tensor([[1.0, 0.5]]), activation=0.6)
    first, later = (data.sample(draws, n, step).signature()[0] for step in (0, 1))
    bound = SIGMAS / math.sqrt(n)
    for feature in range(2):
        row, other = first[:, feature].numpy(), later[:, feature].numpy()
        for power in (1, 2):  # the sign, and whether it is there
            assert abs(np.corrcoef(row[1:] ** power, row[:-1] ** power)[0, 1]) < bound
            assert abs(np.corrcoef(row**power, other**power)[0, 1]) < bound


def test_runs_are_independent() -> None:
    draws, n = draws_of(2, "runs"), 40_000
    data = model(draws, torch.ones(2, 1), activation=0.6)
    one, other = data.sample(draws, n, 0).signature()[..., 0].numpy()
    assert abs(np.corrcoef(one, other)[0, 1]) < SIGMAS / math.sqrt(n)


# ------------------------------------------------------ Definition 3.1: frequency of a token's part


@pytest.mark.parametrize("tokens", [1, 2, 5])
@pytest.mark.parametrize("spread", SPREADS)
def test_a_token_shows_a_feature_with_probability_proportional_to_eps(
    spread: str, tokens: int
) -> None:
    eps = torch.tensor([[1.0, 0.5, 0.2, 0.05]])
    draws, n = draws_of(1, f"definition {spread} {tokens}"), 20_000
    data = model(draws, eps, activation=0.5, tokens=tokens, spread=spread)
    shown = data.latents(draws, n, 0)[0] != 0  # view, sample, token, feature
    share = {
        "one": 1 / tokens,
        "all": 1.0,
        # of the 2^L - 1 non-empty subsets, 2^(L-1) hold a given token
        "subset": 2 ** (tokens - 1) / (2**tokens - 1),
    }[spread]
    chance = (0.5 * eps * share).expand(tokens, -1)
    for view in range(2):
        assert within_binomial(shown[view].sum(dim=0), n, chance)


def test_one_shows_a_feature_once_and_all_everywhere() -> None:
    draws = draws_of(1, "counts")
    for spread, expected in (("one", {1}), ("subset", {1, 2, 3, 4}), ("all", {4})):
        data = model(draws, torch.ones(1, 2), activation=1.0, tokens=4, spread=spread)
        number = (data.latents(draws, 2000, 0) != 0).sum(dim=3)
        assert set(number.unique().tolist()) == expected


def test_frequencies_put_the_majority_first() -> None:
    found = frequencies(2, 3, torch.tensor([0.1, 0.4]), eps_max=0.9)
    expected = [[0.9, 0.9, 0.1, 0.1, 0.1], [0.9, 0.9, 0.4, 0.4, 0.4]]
    torch.testing.assert_close(found, torch.tensor(expected))
    assert frequencies(1, 1, torch.tensor([0.5], dtype=torch.float64)).dtype == torch.float64
