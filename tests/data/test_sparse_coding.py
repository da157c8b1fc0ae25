"""The data model of 000: x = M z + noise (Assumptions 3.1, 3.3), a run alone, what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from small_sparse_coding import SIGMAS, any_model, draws_of, model
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.sparse_coding import Pairs, SparseCoding, check_sparse_coding, dictionary

LEAST_P = 1e-3
ORTHONORMAL = {torch.float32: 1e-6, torch.float64: 1e-12}
INCOHERENCE = 3.0
"""C in max |M_jk| <= C sqrt(log d1 / d1), our reading of the paper's O-tilde(1/sqrt(d1))."""


# ------------------------------------------------------------------ Assumption 3.1: x = M z + noise


@settings(deadline=None, max_examples=25)
@given(
    d1=st.integers(1, 60),
    share=st.floats(0.01, 1.0),
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_the_dictionary_is_column_orthonormal(
    d1: int, share: float, seed: int, dtype: torch.dtype
) -> None:
    d = max(1, int(share * d1))
    atoms = dictionary(Draws([seed, seed + 1], dtype=dtype), d1, d)
    assert atoms.shape == (2, d1, d) and atoms.dtype == dtype
    gram = atoms.transpose(1, 2) @ atoms
    assert (gram - torch.eye(d, dtype=dtype)).abs().max() < ORTHONORMAL[dtype]


@pytest.mark.parametrize(("d1", "d"), [(60, 9), (500, 9), (1024, 64)])
def test_no_dictionary_entry_is_much_larger_than_the_others(d1: int, d: int) -> None:
    atoms = dictionary(draws_of(20), d1, d)
    assert atoms.abs().max() < INCOHERENCE * math.sqrt(math.log(d1) / d1)


def test_dictionaries_of_two_runs_differ_and_spread_over_all_directions() -> None:
    atoms = dictionary(draws_of(4000), 5, 2)
    # |M_1k|^2 has mean 1/d1 in every coordinate k; its variance is 2 (d1-1)/(d1^2 (d1+2))
    mean = atoms.square().mean(dim=0)
    error = math.sqrt(2 * 4 / (25 * 7) / 4000)
    assert (mean - 1 / 5).abs().max() < SIGMAS * error
    assert (atoms[1:] - atoms[:-1]).abs().amax(dim=(1, 2)).min() > 1e-3


@settings(deadline=None, max_examples=15)
@given(any_model)
def test_without_noise_a_token_is_the_dictionary_times_its_latent(
    parts: tuple[str, int, int, float, int],
) -> None:
    spread, tokens, d, activation, seed = parts
    draws = Draws([key("clean", seed)])
    data = model(
        draws,
        torch.ones(1, d),
        d1=10,
        sigma=0.0,
        tokens=tokens,
        activation=activation,
        spread=spread,
    )
    pairs = data.sample(draws, 6, step=0)
    assert pairs.tokens.shape == (1, 2, 6, tokens, 10) and pairs.latents.shape[-1] == d
    for view in range(2):
        for sample in range(6):
            for token in range(tokens):
                expected = data.dictionary[0] @ pairs.latents[0, view, sample, token]
                found = pairs.tokens[0, view, sample, token]
                torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------ Assumption 3.3: the noise


def noise_of(data: SparseCoding, pairs: Pairs) -> Tensor:
    """tokens - M z: (run, view, sample, token, d1)."""
    signal = torch.einsum("rkd,rvsld->rvslk", data.dictionary, pairs.latents)
    return pairs.tokens - signal


def test_the_noise_is_gaussian_with_the_runs_own_std() -> None:
    draws = draws_of(3, "noise")
    sigma = torch.tensor([0.01, 0.5, 2.0])
    data = SparseCoding(dictionary(draws, 8, 2), torch.ones(3, 2), sigma, tokens=2)
    noise = noise_of(data, data.sample(draws, 2000, 0))
    for run in range(3):
        z = noise[run].flatten().double().numpy() / float(sigma[run])
        assert stats.kstest(z, "norm").pvalue > LEAST_P
        assert abs(z.std() - 1) < SIGMAS / math.sqrt(2 * len(z))


def test_the_noise_is_independent_between_coordinates_tokens_views_samples_and_steps() -> None:
    draws = draws_of(1, "independent")
    data = model(draws, torch.ones(1, 2), d1=3, sigma=1.0, tokens=2)
    first, later = (noise_of(data, data.sample(draws, 20_000, step))[0] for step in (0, 1))
    # one column for every (step, view, token, coordinate), one row per sample
    columns = torch.cat([first, later], dim=0).permute(1, 0, 2, 3).reshape(20_000, -1).double()
    covariance = columns.T @ columns / len(columns)
    # a product of independent normals has variance 1, a square has variance 2
    assert (covariance - torch.eye(24)).abs().max() < SIGMAS * math.sqrt(2 / len(columns))
    neighbours = (columns[1:] * columns[:-1]).mean(dim=0)
    assert neighbours.abs().max() < SIGMAS / math.sqrt(len(columns))


def test_the_noise_does_not_know_the_latents() -> None:
    draws, n = draws_of(1, "unaware"), 20_000
    data = model(draws, torch.ones(1, 2), d1=3, sigma=1.0, tokens=2)
    pairs = data.sample(draws, n, 0)
    noise, latent = noise_of(data, pairs)[0].flatten(0, 2), pairs.latents[0].flatten(0, 2)
    products = noise.double().T @ latent.double() / len(noise)
    assert products.abs().max() < SIGMAS / math.sqrt(len(noise))


# ---------------------------------------------------------------------------- the engine's promises


def test_a_run_sees_the_same_data_alone_and_in_company() -> None:
    eps = torch.rand(7, 4, generator=torch.Generator().manual_seed(0)).clamp(min=0.1)
    draws = draws_of(7, "company")
    data = model(draws, eps, spread="subset")
    together = data.sample(draws, 9, step=3)
    alone = Draws([key("company", 4)])
    single = model(alone, eps[4:5], spread="subset")
    assert torch.equal(single.dictionary[0], data.dictionary[4])
    pairs = single.sample(alone, 9, step=3)
    assert torch.equal(pairs.latents[0], together.latents[4])
    torch.testing.assert_close(pairs.tokens[0], together.tokens[4], rtol=0, atol=1e-6)


def test_more_samples_or_views_do_not_change_who_shows_what() -> None:
    draws = draws_of(2, "views and samples")
    data = model(draws, torch.full((2, 3), 0.5))
    one, two = data.latents(draws, 8, 2, views=1), data.latents(draws, 8, 2, views=2)
    assert torch.equal(one[:, 0].sum(dim=2).sign(), two[:, 0].sum(dim=2).sign())


# ----------------------------------------------------------------------------------------- refusals

FINE = {"eps": [0.5], "sigma": [0.1], "activation": 0.3, "tokens": 2, "spread": "one"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"eps": [0.5, -0.1]}, r"eps=-0.1: a feature frequency must be in \(0, 1\]"),
        ({"eps": [0.0]}, r"eps=0.0: a feature frequency must be in \(0, 1\]"),
        ({"eps": [1.5]}, r"eps=1.5: a feature frequency must be in \(0, 1\]"),
        ({"eps": [math.nan]}, r"eps=nan: a feature frequency must be in \(0, 1\]"),
        ({"sigma": [-0.1]}, r"sigma=-0.1: the noise std must be finite and at least 0"),
        ({"sigma": [math.inf]}, r"sigma=inf: the noise std must be finite and at least 0"),
        ({"sigma": [math.nan]}, r"sigma=nan: the noise std must be finite and at least 0"),
        ({"activation": 0.0}, r"activation=0.0: must be in \(0, 1\]: it is a probability"),
        ({"activation": 1.2}, r"activation=1.2: must be in \(0, 1\]: it is a probability"),
        ({"tokens": 0}, r"tokens=0: must be between 1 and 30"),
        ({"tokens": 31}, r"tokens=31: must be between 1 and 30"),
        ({"spread": "some"}, r"spread='some': must be one of one, subset, all"),
    ],
)
def test_a_value_outside_the_model_is_named_with_what_is_allowed(
    wrong: dict[str, object], message: str
) -> None:
    check_sparse_coding(**FINE)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"^{message}$"):
        check_sparse_coding(**{**FINE, **wrong})  # type: ignore[arg-type]


def test_the_model_itself_refuses_what_the_check_refuses() -> None:
    draws = draws_of(1)
    with pytest.raises(UsageError, match="eps="):
        model(draws, torch.tensor([[0.5, -0.5]]))
    with pytest.raises(UsageError, match="spread='most'"):
        model(draws, torch.ones(1, 2), spread="most")


@pytest.mark.parametrize("d", [0, 6])
def test_more_features_than_dimensions_are_refused(d: int) -> None:
    with pytest.raises(UsageError, match=f"^d={d}: needs 1 <= d <= d1, and d1=5$"):
        dictionary(draws_of(1), 5, d)
