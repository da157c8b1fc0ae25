"""Finite training sets: what comes back, what is fresh, and each run's own set in one batch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.finite_set import FRESH, FiniteSets
from rarefy.data.sparse_coding import SparseCoding, dictionary

D1 = 30
SIZES, PAIRS = (12, 12, 40, FRESH, FRESH), (True, False, False, True, False)


def sets(rows: tuple[int, ...] = (0, 1, 2, 3, 4), spread: str = "all") -> tuple[FiniteSets, Draws]:
    draws = Draws([key("finite", row) for row in rows], dtype=torch.float64)
    one = torch.ones(len(rows), dtype=torch.float64)
    pairs = torch.tensor([PAIRS[row] for row in rows])
    data = SparseCoding(
        dictionary(draws, D1, 4),
        torch.tensor([1.0, 1.0, 0.5, 0.5]).double().expand(len(rows), -1),
        0.3 * one,
        spread=spread,
        instance=torch.where(pairs, 0.0, 0.5).double(),
    )
    return FiniteSets(data, draws, torch.tensor([SIZES[row] for row in rows]), pairs), draws


def seen(tokens: Tensor) -> set[tuple[float, ...]]:
    return {tuple(row.tolist()) for row in tokens[0].flatten(1)}


@pytest.mark.parametrize("spread", ["all", "one"])
def test_pairs_come_back_as_they_were_and_never_twice_in_a_batch(spread: str) -> None:
    found, draws = sets(spread=spread)
    both = [
        {tuple(pair.flatten().tolist()) for pair in batch.tokens[0].transpose(0, 1)}
        for batch in (found.sample(draws, 10, step) for step in range(30))
    ]
    assert all(len(batch) == 10 for batch in both)
    assert len(set.union(*both)) == 12 and both[0] != both[1]


def test_samples_come_back_with_their_features_and_their_own_noise() -> None:
    found, draws = sets((1,))
    one, two = (found.sample(draws, 12, step) for step in (0, 1))
    own = [batch.tokens[0].mean(dim=(0, 2)) for batch in (one, two)]
    distance = torch.cdist(own[0], own[1])
    match = distance.argmin(dim=1)
    assert sorted(match.tolist()) == list(range(12))
    # the same sample: noise of four tokens each, 0.5 * 0.3^2 / 4 a coordinate and time
    same = distance[torch.arange(12), match].square().mean() / D1
    assert float(same) == pytest.approx(2 * 0.5 * 0.09 / 4, rel=0.25)
    torch.testing.assert_close(one.latents[0], two.latents[0][:, match], rtol=0, atol=0)
    assert (one.tokens[0] - two.tokens[0][:, match]).abs().min() > 0


def test_both_members_and_all_tokens_share_a_samples_own_noise() -> None:
    found, draws = sets((4,))
    pairs = found.sample(draws, 2000, 0)
    noise = pairs.tokens - torch.einsum("rvntd,rkd->rvntk", pairs.latents, found.data.dictionary)
    variance, shared = noise.var(), (noise[:, 0, :, 0] * noise[:, 1, :, 1]).mean()
    assert float(variance) == pytest.approx(0.09, rel=0.05)
    assert float(shared) == pytest.approx(0.045, rel=0.05)


def test_fresh_samples_are_those_of_the_data_model() -> None:
    found, draws = sets((3, 4))
    for step in (0, 5):
        expected = found.data.sample(draws, 8, step)
        got = found.sample(draws, 8, step)
        torch.testing.assert_close(got.tokens, expected.tokens, rtol=0, atol=0)
    assert not seen(found.sample(draws, 8, 0).x) & seen(found.sample(draws, 8, 1).x)


def test_a_run_has_the_same_set_whatever_its_company() -> None:
    together, draws = sets()
    for row in range(5):
        alone, own = sets((row,))
        for step in (0, 3):
            expected = together.sample(draws, 8, step)
            found = alone.sample(own, 8, step)
            # (a larger set in the batch draws more numbers, of which the first are the same)
            torch.testing.assert_close(found.latents[0], expected.latents[row], rtol=0, atol=0)
            torch.testing.assert_close(found.tokens[0], expected.tokens[row], rtol=0, atol=1e-12)


def test_a_batch_larger_than_a_set_is_refused() -> None:
    found, draws = sets()
    with pytest.raises(UsageError, match="samples=13: must be at most 12, a set's size"):
        found.sample(draws, 13, 0)


def test_a_share_that_is_none_is_refused() -> None:
    found, _ = sets((1,))
    data = found.data
    with pytest.raises(UsageError, match=r"instance=1.5: must be in \[0, 1\]: it is a share"):
        SparseCoding(data.dictionary, data.eps, data.sigma, instance=torch.tensor([1.5]))
