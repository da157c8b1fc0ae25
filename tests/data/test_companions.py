"""Features that come together: each is as frequent as before, pairs of them are not independent.

Statistical bounds are two-sided with probability 1e-6 an entry, or five standard errors, for the
number of samples ``N``; the draws are fixed, so a bound is met always or never.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.sparse_coding import SPREADS, Companions, SparseCoding, dictionary

N = 40_000
SIGMAS, RARE = 5.0, 1e-6
ACTIVATION = 0.4
EPS = (1.0, 0.6, 0.5, 0.2, 0.05)
OF = (0, 1, 0, 0, 1)
"""feature 2 and 3 come with feature 0, feature 4 with feature 1"""
FOLLOWERS = {2: 0, 3: 0, 4: 1}
SHARES = (0.0, 0.3, 1.0)


def model(
    draws: Draws,
    share: tuple[float, ...],
    *,
    eps: tuple[float, ...] = EPS,
    of: tuple[int, ...] | None = OF,
    spread: str = "all",
    tokens: int = 2,
    activation: float = ACTIVATION,
) -> SparseCoding:
    """One run for each share; ``of=None``: independent features."""
    runs, dtype = len(share), draws.dtype
    companions = None if of is None else Companions(of, torch.tensor(share, dtype=dtype))
    return SparseCoding(
        dictionary(draws, 8, len(eps)),
        torch.tensor(eps, dtype=dtype).expand(runs, -1),
        torch.full((runs,), 0.1, dtype=dtype),
        activation,
        tokens,
        spread,
        companions,
    )


def draws_of(runs: int, name: str, dtype: torch.dtype = torch.float32) -> Draws:
    return Draws([key("companions", name, run) for run in range(runs)], dtype=dtype)


def signatures(name: str, share: tuple[float, ...] = SHARES, **options: Any) -> Tensor:
    """Signed support of ``N`` samples: (run, sample, d), values -1, 0, 1."""
    draws = draws_of(len(share), name)
    latents = model(draws, share, **options).latents(draws, N, step=0, views=1)
    return latents[:, 0, :, 0]


def within_binomial(hits: Tensor, chance: Tensor) -> bool:
    low, high = (stats.binom.ppf(q, N, chance.double().numpy()) for q in (RARE / 2, 1 - RARE / 2))
    counted = hits.numpy()
    return bool(((counted >= low) & (counted <= high)).all())


# ------------------------------------------------------------------------------- single frequencies


def test_every_feature_is_as_frequent_as_without_companions() -> None:
    present = signatures("marginal") != 0
    assert within_binomial(present.sum(dim=1), ACTIVATION * torch.tensor(EPS).expand(3, -1))


def test_a_frequent_feature_keeps_its_frequency_when_it_follows_a_rare_one() -> None:
    present = signatures("other way", eps=(0.1, 0.9), of=(0, 0)) != 0
    assert within_binomial(present.sum(dim=1), ACTIVATION * torch.tensor([0.1, 0.9]).expand(3, -1))


# -------------------------------------------------------------------------------------------- pairs


@pytest.mark.parametrize(("rare", "frequent"), FOLLOWERS.items())
def test_both_are_present_as_often_as_the_formula_says(rare: int, frequent: int) -> None:
    """With chance ``share`` one coin decides both, and the rarer one decides; otherwise each its
    own: P(both) = a eps_j (share + (1 - share) a eps_k) for eps_j <= eps_k."""
    share = (0.0, 0.2, 0.5, 0.9, 1.0)
    present = signatures(f"joint {rare}", share) != 0
    both = (present[:, :, rare] & present[:, :, frequent]).sum(dim=1)
    s = torch.tensor(share)
    chance = ACTIVATION * EPS[rare] * (s + (1 - s) * ACTIVATION * EPS[frequent])
    assert within_binomial(both, chance)


def test_a_shared_coin_makes_the_rare_feature_appear_only_with_its_companion() -> None:
    present = signatures("subset", (1.0,))[0] != 0
    for rare, frequent in FOLLOWERS.items():
        assert present[:, rare].any()
        assert not (present[:, rare] & ~present[:, frequent]).any()
    # two followers of one feature are nested too
    assert not (present[:, 3] & ~present[:, 2]).any()


def test_features_of_one_frequency_with_one_coin_are_always_together() -> None:
    present = signatures("twins", (1.0,), eps=(0.5, 0.5, 0.5), of=(0, 0, 2))[0] != 0
    assert torch.equal(present[:, 0], present[:, 1])
    assert not torch.equal(present[:, 0], present[:, 2])


def test_without_a_share_features_are_independent() -> None:
    present = (signatures("independent", (0.0,))[0] != 0).double().numpy()
    off_diagonal = np.corrcoef(present.T) - np.eye(len(EPS))
    assert np.abs(off_diagonal).max() < SIGMAS / math.sqrt(N)


def test_features_that_do_not_come_together_stay_independent() -> None:
    present = (signatures("strangers", (1.0,))[0] != 0).double().numpy()
    correlation = np.corrcoef(present.T)
    for one, other in ((0, 1), (0, 4), (1, 2), (1, 3), (2, 4), (3, 4)):
        assert abs(correlation[one, other]) < SIGMAS / math.sqrt(N)
    for rare, frequent in FOLLOWERS.items():  # the same measure sees those that do
        assert correlation[rare, frequent] > 2 * SIGMAS / math.sqrt(N)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("of", [OF, tuple(range(len(EPS)))])
def test_a_share_of_0_or_a_feature_that_follows_itself_is_the_plain_model(
    of: tuple[int, ...], dtype: torch.dtype
) -> None:
    """The same samples show the same features; only the signs are drawn elsewhere."""
    draws = draws_of(2, "plain", dtype)
    share = (0.0, 0.0) if of == OF else (0.5, 1.0)
    with_companions = model(draws, share, of=of).latents(draws, 5000, step=3)
    plain = model(draws, share, of=None).latents(draws, 5000, step=3)
    assert with_companions.dtype == plain.dtype == dtype
    assert torch.equal(with_companions != 0, plain != 0)


def test_samples_share_coins_each_for_itself() -> None:
    """``share`` is a chance for every sample, not for a whole batch."""
    present = signatures("each sample", (0.5,), eps=(1.0, 1.0), of=(0, 0))[0] != 0
    agree = (present[:, 0] == present[:, 1]).double().numpy()
    # alike with chance s + (1 - s)(a^2 + (1-a)^2) in each sample, whatever the one before did
    chance = 0.5 + 0.5 * (ACTIVATION**2 + (1 - ACTIVATION) ** 2)
    assert abs(agree.mean() - chance) < SIGMAS * math.sqrt(chance * (1 - chance) / N)
    assert abs(np.corrcoef(agree[1:], agree[:-1])[0, 1]) < SIGMAS / math.sqrt(N)


# -------------------------------------------------------------------------------------------- signs


def test_signs_are_symmetric_and_independent_even_of_features_that_come_together() -> None:
    sign = signatures("signs", (1.0,), eps=(1.0,) * 4, of=(0, 0, 0, 3), activation=1.0)[0].double()
    assert (sign != 0).all()
    products = sign.T @ sign / N - torch.eye(4)
    assert products.abs().max() < SIGMAS / math.sqrt(N)
    assert sign.mean(dim=0).abs().max() < SIGMAS / math.sqrt(N)


def test_signs_do_not_know_who_else_is_present() -> None:
    found = signatures("sign and support")
    for run in range(len(SHARES)):
        sign, present = found[run].double(), (found[run] != 0).double()
        # E[sign_j present_k] = 0; its standard error is at most 1/sqrt(N)
        assert (sign.T @ present / N).abs().max() < SIGMAS / math.sqrt(N)
        pairs = sign.T @ sign / N
        assert (pairs - torch.diag(pairs.diagonal())).abs().max() < SIGMAS / math.sqrt(N)


# ----------------------------------------------------------------------- the rest of the data model


@settings(deadline=None, max_examples=25)
@given(
    spread=st.sampled_from(SPREADS),
    tokens=st.integers(1, 4),
    share=st.floats(0, 1),
    seed=st.integers(0, 10**6),
)
def test_a_pair_still_shares_support_and_sign_of_the_summed_latent(
    spread: str, tokens: int, share: float, seed: int
) -> None:
    draws = draws_of(2, f"pairs {seed}")
    data = model(draws, (share, 1.0), spread=spread, tokens=tokens)
    pairs = data.sample(draws, 40, step=seed % 5)
    assert torch.isin(pairs.latents, torch.tensor([-1.0, 0.0, 1.0])).all()
    assert torch.equal(pairs.latents.sum(dim=3).abs(), pairs.latents.abs().sum(dim=3))
    summed = pairs.latents.sum(dim=3)
    assert torch.equal(summed[:, 0].sign(), summed[:, 1].sign())
    assert torch.equal(pairs.signature(), summed[:, 0].sign())
    assert torch.equal(pairs.present(), summed[:, 1] != 0)
    # the noise is that of the plain model
    plain = model(draws, (share, 1.0), of=None, spread=spread, tokens=tokens)
    noise, expected = (
        found.tokens - torch.einsum("rkd,rvsld->rvslk", data.dictionary, found.latents)
        for found in (pairs, plain.sample(draws, 40, step=seed % 5))
    )
    torch.testing.assert_close(noise, expected, rtol=0, atol=1e-5)
    assert noise.std() > 0.05


def test_a_run_sees_the_same_data_alone_and_in_company() -> None:
    share = (0.0, 0.25, 0.5, 0.75, 1.0)
    draws = draws_of(5, "company", torch.float64)
    together = model(draws, share, spread="subset").sample(draws, 50, step=2)
    for run in range(5):
        own = Draws([key("companions", "company", run)], dtype=torch.float64)
        alone = model(own, share[run : run + 1], spread="subset").sample(own, 50, step=2)
        assert torch.equal(alone.latents[0], together.latents[run])
        torch.testing.assert_close(alone.tokens[0], together.tokens[run], rtol=0, atol=1e-12)


def test_different_steps_are_independent() -> None:
    draws = draws_of(1, "steps")
    data = model(draws, (0.5,), eps=(1.0, 1.0), of=(0, 0))
    first, later = (data.latents(draws, N, step, views=1)[0, 0, :, 0].numpy() for step in (0, 1))
    looks = {
        "sign": lambda found: found[:, 1],
        "presence": lambda found: found[:, 1] != 0,
        "whether both or none": lambda found: (found[:, 0] != 0) == (found[:, 1] != 0),
    }
    for look in looks.values():
        between = np.corrcoef(look(first).astype(float), look(later).astype(float))[0, 1]
        assert abs(between) < SIGMAS / math.sqrt(N)


@pytest.mark.parametrize(
    ("of", "share", "message"),
    [
        ((1, 0, 2), 1.0, "a companion must not follow another one"),
        ((0, 0, 1), 1.0, "a companion must not follow another one"),
        ((0,), 1.0, r"needs a feature 0\.\.2 for each"),
        ((0, 1, 3), 1.0, r"needs a feature 0\.\.2 for each"),
        ((0, 1, -1), 1.0, r"needs a feature 0\.\.2 for each"),
        ((0, 0, 2), 7.0, r"share=7.0: must be in \[0, 1\]"),
    ],
)
def test_companions_that_make_no_sense_are_refused(
    of: tuple[int, ...], share: float, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        model(draws_of(1, "refused"), (share,), eps=(0.5, 0.5, 0.5), of=of)
