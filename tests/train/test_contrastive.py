"""The contrastive problem, one branch and two: its gradient by hand, autograd and (21) in loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from small_contrastive import (
    Small,
    naive_brelu,
    naive_mixed_tokens,
    population_gradient,
    random_attention,
    small,
)
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.nets.brelu_transformer import Attention, encode
from rarefy.train.contrastive import initial_weights
from rarefy.train.descent import automatic_gradients, descend
from rarefy.train.losses import info_nce, symmetric_info_nce
from rarefy.train.optimisers import Sgd
from rarefy.train.two_branches import TwoBranches

RELATIVE = 1e-12
"""float64, relative to the largest entry of a gradient"""
ATTENTIONS: dict[str, Callable[[], Attention]] = {
    "identity": Attention,
    "plain mean": lambda: Attention(scale=0.0),
    "one W_Q, W_K, W_V": lambda: random_attention(6),
    "W_Q, W_K, W_V of each run": lambda: random_attention(6, runs=2, seed=1),
}


def assert_close(found: Tensor, expected: Tensor) -> None:
    assert (found - expected).abs().max() <= RELATIVE * expected.abs().max()


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("tokens", [1, 2, 5])
@pytest.mark.parametrize("spread", ["one", "subset", "all"])
def test_the_gradient_by_hand_is_autograds(attention: str, tokens: int, spread: str) -> None:
    case = small(
        tokens=tokens,
        spread=spread,
        bias=0.3,
        tau=0.7,
        factor=1.3,
        attention=ATTENTIONS[attention](),
    )
    batch = case.data.sample(case.draws, 8, step=0)
    loss, found = case.problem.gradients(case.parameters, batch)
    auto_loss, expected = automatic_gradients(case.problem, case.parameters, batch)
    assert_close(loss, auto_loss)
    assert expected["weights"].abs().amax(dim=(1, 2)).min() > 1e-4
    assert_close(found["weights"], expected["weights"])


def test_neurons_that_are_silent_everywhere_get_no_gradient() -> None:
    case = small(bias=1e6)
    batch = case.data.sample(case.draws, 8, step=0)
    loss, found = case.problem.gradients(case.parameters, batch)
    assert not found["weights"].any() and loss.tolist() == pytest.approx([math.log(8)] * 2)


@pytest.mark.parametrize(("tau", "factor"), [(1.0, 1.0), (0.6, 0.6), (0.6, 1.0)])
def test_the_gradient_is_formula_21_written_in_loops(tau: float, factor: float) -> None:
    """(21) is the gradient of tau times loss (1): here times factor/tau."""
    case = small(bias=0.2, tau=tau, factor=factor, attention=random_attention(6))
    batch = case.data.sample(case.draws, 5, step=1)
    found = case.problem.gradients(case.parameters, batch)[1]["weights"]
    for run in range(2):
        expected = _formula_21(case, batch.x[run], batch.y[run], run, tau)
        assert_close(found[run], factor / tau * expected)


def _formula_21(case: Small, x: Tensor, y: Tensor, run: int, tau: float) -> Tensor:
    samples = len(x)
    weights, bias = case.weights[run], case.problem.bias.value[run]
    attention = case.problem.attention
    z_x = [naive_mixed_tokens(tokens, attention, run) for tokens in x]
    z_y = [naive_mixed_tokens(tokens, attention, run) for tokens in y]

    def h(i: int, mixed: Tensor) -> float:
        return sum(naive_brelu(float(weights[i] @ z), float(bias[i])) for z in mixed)

    neurons = range(len(weights))
    f_x = [[h(i, z) for i in neurons] for z in z_x]
    f_y = [[h(i, z) for i in neurons] for z in z_y]
    gradient = torch.zeros_like(weights)
    for n in range(samples):
        similarity = [sum(a * b for a, b in zip(f_x[n], f, strict=True)) for f in f_y]
        total = sum(math.exp(s / tau) for s in similarity)
        logit = [math.exp(s / tau) / total for s in similarity]  # (19) and (20)
        for i in neurons:
            active = [z for z in z_x[n] if abs(float(weights[i] @ z)) >= float(bias[i])]
            direction = torch.stack(active).sum(dim=0) if active else torch.zeros_like(weights[0])
            gradient[i] += (logit[n] - 1) * f_y[n][i] * direction
            for s in range(samples):
                if s != n:
                    gradient[i] += logit[s] * f_y[s][i] * direction
    return gradient / samples


def test_a_run_has_the_same_gradient_alone_and_in_company() -> None:
    together = small(runs=5, bias=0.2)
    batch = together.data.sample(together.draws, 6, step=2)
    loss, found = together.problem.gradients(together.parameters, batch)
    alone = small(runs=1, bias=0.2)
    own_loss, own = alone.problem.gradients(
        alone.parameters, alone.data.sample(alone.draws, 6, step=2)
    )
    assert_close(loss[:1], own_loss)
    assert_close(found["weights"][:1], own["weights"])


def test_each_run_has_its_own_temperature() -> None:
    case = small(runs=2)
    twice = small(runs=2, tau=2.0)
    batch = case.data.sample(case.draws, 6, step=0)
    case.problem.tau[1] = 2.0
    mixed = case.problem.gradients(case.parameters, batch)[1]["weights"]
    hot = twice.problem.gradients(case.parameters, batch)[1]["weights"]
    assert_close(mixed[1], hot[1])
    assert (mixed[0] - hot[0]).abs().max() > 1e-3


def test_initial_weights_are_gaussian_with_the_runs_own_std() -> None:
    draws = Draws([key("initial", run) for run in range(2)])
    weights = initial_weights(draws, 200, 100, torch.tensor([0.001, 2.0]))
    assert weights.shape == (2, 200, 100)
    std = weights.flatten(1).double().std(dim=1)
    assert std.tolist() == pytest.approx([0.001, 2.0], rel=5 / math.sqrt(2 * 20_000))


def test_the_population_gradient_is_a_mean_with_its_standard_error() -> None:
    case = small(runs=3, bias=0.1)
    few_mean, few_error = population_gradient(
        case.problem, case.parameters, case.data, case.draws, samples=8, batches=100
    )
    mean, error = population_gradient(
        case.problem,
        case.parameters,
        case.data,
        case.draws.spawn("longer"),
        samples=8,
        batches=1600,
    )
    assert mean.shape == error.shape == case.weights.shape
    # two independent estimates: 72 entries, P(any beyond 4 standard errors) = 0.005
    apart = (few_mean - mean).abs() / (few_error.square() + error.square()).sqrt()
    assert apart.max() < 4
    assert apart.square().mean() == pytest.approx(1, abs=0.6)
    # sixteen times the batches: a quarter of the error
    assert float((few_error / error).median()) == pytest.approx(4, rel=0.1)


def test_the_population_gradient_is_the_mean_over_batches() -> None:
    case = small()
    steps = [
        case.problem.gradients(case.parameters, case.data.sample(case.draws, 4, step))[1]["weights"]
        for step in range(5)
    ]
    mean, error = population_gradient(case.problem, case.parameters, case.data, case.draws, 4, 5)
    assert_close(mean, torch.stack(steps).mean(dim=0))
    expected = torch.stack(steps).std(dim=0) / math.sqrt(5)
    torch.testing.assert_close(error, expected, rtol=1e-6, atol=1e-12)


# ------------------------------------------------------------------------------------- two branches


SETTINGS: dict[str, dict[str, Any]] = {
    "no bias": {},
    "bias": {"bias": 0.3, "tau": 0.7, "factor": 1.3},
    "other attention": {"bias": 0.2, "attention": random_attention(6)},
    "all tokens": {"bias": 0.2, "spread": "all", "tokens": 3},
}


def branches(keep: float, **options: Any) -> tuple[Small, TwoBranches]:
    case = small(**options)
    return case, TwoBranches(**vars(case.problem), keep=keep)


@pytest.mark.parametrize("keep", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_gradient_of_two_branches_is_autograds(setting: str, keep: float) -> None:
    case, problem = branches(keep, **SETTINGS[setting])
    batch = case.data.sample(case.draws, 8, step=0)
    loss, found = problem.gradients(case.parameters, batch)
    expected_loss, expected = automatic_gradients(problem, case.parameters, batch)
    assert expected["weights"].abs().amax(dim=(1, 2)).min() > 1e-4
    assert_close(loss, expected_loss)
    assert_close(found["weights"], expected["weights"])


def test_the_mask_keeps_the_largest_weights_of_each_run() -> None:
    case, problem = branches(0.25, runs=3)
    mask = problem.mask(case.weights)
    assert mask.sum(dim=(1, 2)).tolist() == [6.0] * 3  # of 4 x 6
    for run in range(3):
        sizes = case.weights[run].abs().flatten()
        kept = mask[run].flatten() == 1
        assert sizes[kept].min() > sizes[~kept].max()


def test_a_weight_that_the_masked_branch_lacks_is_moved_by_the_dense_one_alone() -> None:
    """By finite differences, f(Y) held."""
    case, problem = branches(0.25, bias=0.2)
    batch = case.data.sample(case.draws, 8, step=0)
    mask = problem.mask(case.weights)
    bias = problem.masked_bias(case.weights, mask)
    f_y = encode(case.weights * mask, bias, batch.y, problem.attention)
    assert (f_y - problem.embed(case.parameters, batch.y)).abs().max() > 1e-2
    place = tuple(torch.nonzero(mask[0] == 0)[0].tolist())
    step = torch.zeros_like(case.weights)
    step[0][place] = 1e-6

    def loss(weights: Tensor) -> float:
        f_x = problem.embed({"weights": weights}, batch.x)
        return float(symmetric_info_nce(f_x, f_y, problem.tau, problem.factor)[0])

    slope = (loss(case.weights + step) - loss(case.weights - step)) / 2e-6
    found = problem.gradients(case.parameters, batch)[1]["weights"][0][place]
    assert abs(slope) > 1e-4 and float(found) == pytest.approx(slope, rel=1e-5)


def test_the_bias_of_the_masked_branch_goes_with_its_norm() -> None:
    case, problem = branches(0.3, bias=0.4)
    mask = problem.mask(case.weights)
    norms = [(case.weights * part).norm(dim=2) for part in (mask, torch.ones_like(mask))]
    expected = problem.bias.value * norms[0] / norms[1]
    torch.testing.assert_close(problem.masked_bias(case.weights, mask), expected)


def test_near_zero_a_step_without_masks_is_as_long_as_one_of_the_plain_loss() -> None:
    """Averaged over many samples; X and Y are exchangeable in law, not in a sample."""
    case, problem = branches(1.0, sigma_0=1e-4, sigma=0.01)
    batch = case.data.sample(case.draws, 2048, step=0)
    both = problem.gradients(case.parameters, batch)[1]["weights"]
    plain = case.problem.gradients(case.parameters, batch)[1]["weights"]
    assert (both - plain).abs().max() < 0.05 * plain.abs().max()


def test_the_symmetric_loss_is_half_the_mean_of_both_directions() -> None:
    generator = torch.Generator().manual_seed(0)
    f_x, f_y = torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64)
    tau, factor = torch.tensor([0.5, 1.0, 2.0]).double(), torch.tensor([1.0, 3.0, 0.5]).double()
    both = (info_nce(f_x, f_y, tau, factor) + info_nce(f_y, f_x, tau, factor)) / 4
    torch.testing.assert_close(symmetric_info_nce(f_x, f_y, tau, factor), both)


@pytest.mark.parametrize("keep", [1.0, 0.4])
def test_a_run_is_the_same_alone_in_company_and_after_a_stop(keep: float) -> None:
    def trained(case: Small, problem: TwoBranches, first: int, last: int, start: Tensor) -> Tensor:
        def batches(step: int) -> Any:
            return case.data.sample(case.draws, 6, first + step)

        return descend(
            problem, {"weights": start}, batches, Sgd(0.3, weight_decay=1e-3), last - first
        ).parameters["weights"]

    case, problem = branches(keep, runs=4, bias=0.2)
    whole = trained(case, problem, 0, 12, case.weights)
    half = trained(case, problem, 0, 5, case.weights)
    torch.testing.assert_close(trained(case, problem, 5, 12, half), whole, rtol=0, atol=0)
    alone, own = branches(keep, runs=1, first=2, bias=0.2)
    assert_close(trained(alone, own, 0, 12, alone.weights)[0], whole[2])
