"""Loss and hand-written gradient of the patch network against autograd and a plain loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.patches import PatchSamples
from rarefy.data.signal_noise import SignalNoise
from rarefy.train.descent import automatic_gradients, descend
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier

RUNS, CLASSES, M, D, N = 3, 3, 4, 12, 7


def setting(shared: bool) -> tuple[PatchSamples, Tensor]:
    keys = [5] if shared else [5, 6, 7]
    draws = Draws(keys, dtype=torch.float64)
    mu = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    sigma = torch.tensor([0.3, 0.0, 1.5], dtype=torch.float64)
    samples = SignalNoise(CLASSES, D, mu, sigma).sample(draws, N)
    filters = Draws([1, 2, 3], dtype=torch.float64).normal("filters", (CLASSES, M, D))
    return samples, 0.7 * filters


def plain_loss(filters: Tensor, samples: PatchSamples, scale: float) -> Tensor:
    """002 Sec. 3 word for word, one run and one sample at a time."""
    losses = []
    for run in range(len(filters)):
        at = run % len(samples.noise)
        total = filters.new_zeros(())
        for i in range(len(samples)):
            label = int(samples.labels[at, i])
            noise = samples.noise_scale[run] * samples.noise[at, i]
            signal = samples.strength[run, label] * samples.features[at, label]
            responses = filters[run] @ torch.stack([noise, signal], dim=1)
            scores = scale * torch.relu(responses).sum(dim=(1, 2))
            total = total + torch.logsumexp(scores, dim=0) - scores[label]
        losses.append(total / len(samples))
    return torch.stack(losses)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1 / M])
def test_loss_is_the_formula(shared: bool, scale: float) -> None:
    samples, filters = setting(shared)
    found = PatchClassifier.of(samples, scale).loss({"filters": filters})
    torch.testing.assert_close(found, plain_loss(filters, samples, scale))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1 / M])
def test_gradient_is_autograd_s(shared: bool, scale: float) -> None:
    samples, filters = setting(shared)
    # run 1 has no noise: every response to a noise patch is 0, where ReLU' is 1 here, 0 in torch,
    # and a scale of 0 makes both the same
    problem = PatchClassifier.of(samples, scale)
    loss, by_hand = problem.gradients({"filters": filters})
    automatic_loss, automatic = automatic_gradients(problem, {"filters": filters}, None)
    torch.testing.assert_close(loss, automatic_loss)
    torch.testing.assert_close(by_hand["filters"], automatic["filters"], rtol=1e-12, atol=1e-14)


def test_a_filter_of_zeros_learns() -> None:
    """ReLU'(0) = 1 (002 Sec. 3)."""
    samples, filters = setting(True)
    _, found = PatchClassifier.of(samples, 1.0).gradients({"filters": torch.zeros_like(filters)})
    assert bool((found["filters"].abs().sum(dim=3) > 0).all())


def test_coefficients_of_the_gradient_put_together_are_the_gradient() -> None:
    samples, filters = setting(False)
    patches = N + CLASSES
    problem = PatchClassifier.of(samples, 0.5)
    start = filters.new_zeros(RUNS, CLASSES, M, patches)
    _, found = problem.gradients({"filters": filters, "coefficients": start})
    together = torch.einsum("rkmp,rpd->rkmd", found["coefficients"], samples.patches())
    torch.testing.assert_close(together, found["filters"])
    # signs: own class is pulled towards a patch, others are pushed away
    own = samples.one_hot().transpose(1, 2)[:, :, None, :]
    noise = found["coefficients"][..., :N]
    assert bool((noise * own <= 0).all()) and bool((noise * (1 - own) >= 0).all())


def test_runs_that_share_samples_are_as_alone() -> None:
    samples, filters = setting(True)
    problem = PatchClassifier.of(samples, 1.0)
    loss, gradient = problem.gradients({"filters": filters})
    for run in range(RUNS):
        one = slice(run, run + 1)
        alone = PatchSamples(
            samples.labels,
            samples.noise,
            samples.features,
            samples.noise_scale[one],
            samples.strength[one],
        )
        found, part = PatchClassifier.of(alone, 1.0).gradients({"filters": filters[one]})
        torch.testing.assert_close(found, loss[one], rtol=1e-12, atol=0)
        torch.testing.assert_close(part["filters"], gradient["filters"][one])


def test_padding_changes_nothing() -> None:
    """On a GPU patches of zeros are added; the coefficients given back do not have them."""
    samples, filters = setting(False)
    plain = PatchClassifier.of(samples, 0.5)
    pad = torch.nn.functional.pad
    wide = PatchClassifier(
        pad(plain.patches, (0, 0, 0, 2)), pad(plain.scales, (0, 2)), plain.one_hot, 0.5
    )
    start = {"filters": filters, "coefficients": filters.new_zeros(RUNS, CLASSES, M, N + CLASSES)}
    for first, second in zip(plain.gradients(start), wide.gradients(start), strict=True):
        torch.testing.assert_close(first, second)
    torch.testing.assert_close(plain.loss(start), wide.loss(start))


def test_descent_lowers_the_loss_to_a_small_one() -> None:
    samples, filters = setting(False)
    problem = PatchClassifier.of(samples, 1.0)
    before = problem.loss({"filters": filters})
    trained = descend(problem, {"filters": filters}, lambda step: None, Sgd(0.1), 400)
    after = problem.loss(trained.parameters)
    assert bool((after < 0.1).all()) and bool((after < before).all())


def test_the_smaller_product_is_taken_only_where_it_is_the_same() -> None:
    samples, filters = setting(True)
    short = PatchClassifier.of(samples, 1.0)
    whole = replace(short, noise_columns=None)
    assert short.noise_columns is not None
    for found, expected in zip(
        short.gradients({"filters": filters})[1].values(),
        whole.gradients({"filters": filters})[1].values(),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    own = setting(False)[0]
    assert PatchClassifier.of(own, 1.0).noise_columns is None
    for changed in (
        replace(samples, noise=samples.noise + 1e-9),
        replace(samples, features=samples.features.flip(2)),
    ):
        assert PatchClassifier.of(changed, 1.0).noise_columns is None
