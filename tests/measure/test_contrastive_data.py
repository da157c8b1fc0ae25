"""The growth moment against its closed form; the loss floor against counting and training."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
import torch
from scipy import stats
from small_contrastive import small
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.data.sparse_coding import SPREADS, SparseCoding, dictionary
from rarefy.measure.contrastive_data import latent_moment, loss_floor
from rarefy.nets.brelu_transformer import Attention
from rarefy.theory.contrastive import uniform_attention_moment
from rarefy.train.descent import descend
from rarefy.train.optimisers import Sgd

RUNS = 40


def data_of(
    draws: Draws, eps: list[float], tokens: int = 2, spread: str = "one", activation: float = 0.4
) -> SparseCoding:
    runs = len(draws)
    atoms = dictionary(draws, 6, len(eps))
    sigma = torch.full((runs,), 0.1, dtype=draws.dtype)
    frequency = torch.tensor(eps, dtype=draws.dtype).expand(runs, -1)
    return SparseCoding(atoms, frequency, sigma, activation, tokens, spread)


def draws_of(name: str, runs: int = RUNS) -> Draws:
    return Draws([key(name, run) for run in range(runs)], dtype=torch.float64)


def mean_and_error(rows: Tensor) -> tuple[Tensor, Tensor]:
    return rows.mean(dim=0), rows.std(dim=0) / math.sqrt(len(rows))


@pytest.mark.quick("subset-4", "all-1", "one-2")
@pytest.mark.parametrize("tokens", [1, 2, 4])
@pytest.mark.parametrize("spread", SPREADS)
def test_the_moment_under_plain_averaging_is_the_closed_form(spread: str, tokens: int) -> None:
    eps = [1.0, 0.5, 0.1]
    draws = draws_of(f"moment {spread} {tokens}")
    data = data_of(draws, eps, tokens, spread)
    mean, error = mean_and_error(latent_moment(data, Attention(scale=0.0), draws, 1024))
    expected = uniform_attention_moment(torch.tensor(eps, dtype=torch.float64), 0.4, tokens, spread)
    assert ((mean - expected).abs() < 4 * error).all()
    assert (error < 0.1 * expected).all()  # so a wrong formula would show


def test_with_all_tokens_showing_a_feature_attention_does_not_matter() -> None:
    """The rows of any attention sum to 1 and all tokens carry the same latent."""
    draws = draws_of("all", 3)
    data = data_of(draws, [1.0, 0.5], tokens=3, spread="all")
    plain, attending = (
        latent_moment(data, Attention(scale=scale), draws, 256) for scale in (0.0, 1.0)
    )
    torch.testing.assert_close(attending, plain, rtol=1e-12, atol=1e-12)


def test_attention_that_looks_at_the_feature_raises_the_moment() -> None:
    """With one token of two showing it, scores favour the token with the larger norm."""
    draws = draws_of("one")
    data = data_of(draws, [1.0], spread="one", activation=1.0)
    plain, _ = mean_and_error(latent_moment(data, Attention(scale=0.0), draws, 256))
    attending, error = mean_and_error(latent_moment(data, Attention(), draws, 256))
    # the token with it attends to it by e/(e+1), the one without by 1/2: (e/(e+1) + 1/2)^2
    share = math.e / (math.e + 1) + 1 / 2
    assert float(plain) == pytest.approx(1.0, abs=1e-12)
    assert abs(float(attending) - share**2) < 4 * float(error) + 0.02  # noise moves the scores


def test_the_moment_is_of_the_run_alone() -> None:
    draws, alone = draws_of("company", 5), draws_of("company", 1)
    together = latent_moment(data_of(draws, [1.0, 0.5]), Attention(), draws, 128)
    own = latent_moment(data_of(alone, [1.0, 0.5]), Attention(), alone, 128)
    torch.testing.assert_close(together[:1], own, rtol=1e-12, atol=1e-12)


# -------------------------------------------------------------------------------------------- floor


@pytest.mark.parametrize("spread", SPREADS)
def test_the_floor_is_the_mean_logarithm_of_the_counted_twins(spread: str) -> None:
    draws = draws_of(f"floor {spread}", 3)
    data = data_of(draws, [1.0, 0.5, 0.5, 0.2], tokens=3, spread=spread)
    batch, batches = 16, 3
    found = loss_floor(data, draws, batch, batches)
    for run in range(3):
        total = 0.0
        for index in range(batches):
            latent = data.latents(draws, batch, index)[run, 0].sum(dim=1).sign()
            names = [tuple(row) for row in latent.tolist()]
            count = Counter(names)
            total += sum(math.log(count[name]) for name in names) / batch
        assert float(found[run]) == pytest.approx(total / batches, rel=1e-12)


def test_the_floor_is_its_expectation_over_all_signatures() -> None:
    """E log(1 + Binomial(B-1, p_s)) summed over signatures s of two features."""
    eps, activation, batch = [1.0, 0.5], 0.4, 8
    expected = 0.0
    for signature in itertools.product((-1, 0, 1), repeat=2):
        chance = math.prod(
            activation * e / 2 if s else 1 - activation * e
            for s, e in zip(signature, eps, strict=True)
        )
        others = range(batch)
        logs = [math.log(1 + k) * stats.binom.pmf(k, batch - 1, chance) for k in others]
        expected += chance * sum(logs)
    draws = draws_of("expected floor", 200)
    data = data_of(draws, eps, activation=activation)
    mean, error = mean_and_error(loss_floor(data, draws, batch, batches=8))
    assert abs(float(mean) - expected) < 4 * float(error)
    assert float(error) < 0.02 * expected


def test_features_that_are_nearly_never_present_make_everyone_a_twin() -> None:
    draws = draws_of("twins", 2)
    data = data_of(draws, [1e-6, 1e-6])
    assert loss_floor(data, draws, 16).tolist() == pytest.approx([math.log(16)] * 2)


def test_many_features_leave_hardly_any_twins() -> None:
    draws = Draws([1, 2], dtype=torch.float64)
    eps = torch.ones(2, 40, dtype=torch.float64)
    data = SparseCoding(dictionary(draws, 40, 40), eps, torch.zeros(2, dtype=torch.float64), 0.5)
    assert not loss_floor(data, draws, 64, batches=2).any()


def test_no_training_gets_below_the_floor() -> None:
    """The mean loss of 40 trained runs stays above theirs, and comes near it."""
    # every feature in every sample: an odd network cannot tell {1} from {1, 2}, but signs it can
    case = small(
        name="floor",
        runs=RUNS,
        eps=(1.0, 1.0),
        sigma=0.05,
        spread="all",
        activation=1.0,
        sigma_0=0.1,
    )
    batch, steps = 16, 150
    trajectory = descend(
        case.problem,
        case.parameters,
        lambda step: case.data.sample(case.draws, batch, step),
        Sgd(0.3),
        steps,
        trackers={"loss": lambda s: s.loss},
        record=range(steps - 49, steps + 1),
    )
    loss = trajectory.records["loss"].mean(dim=1)
    floor = loss_floor(case.data, case.draws.spawn("floor"), batch, batches=50)
    mean, error = mean_and_error(loss - floor)
    assert float(mean) > -4 * float(error)
    assert float(mean) < 0.2 < math.log(batch) - float(floor.mean())
