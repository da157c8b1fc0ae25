"""Loss and error on fresh samples."""

from __future__ import annotations

import math

import pytest
import torch

from rarefy.core.rng import Draws
from rarefy.data.patches import PatchSamples
from rarefy.data.signal_noise import SignalNoise
from rarefy.measure.generalisation import (
    CHUNK,
    generalisation,
    sample_losses,
    scores_of,
    scores_of_responses,
)
from rarefy.nets.patch_cnn import responses

CLASSES, M, D = 3, 4, 15


def model(shared: bool = False) -> tuple[SignalNoise, Draws, torch.Tensor]:
    mu = torch.tensor([1.0, 2.0], dtype=torch.float64)
    sigma = torch.tensor([0.5, 0.2], dtype=torch.float64)
    draws = Draws([4] if shared else [4, 5], dtype=torch.float64)
    filters = Draws([8, 9], dtype=torch.float64).normal("filters", (CLASSES, M, D))
    return SignalNoise(CLASSES, D, mu, sigma), draws, filters


@pytest.mark.parametrize("shared", [True, False])
def test_scores_are_those_of_plain_samples(shared: bool) -> None:
    data, draws, filters = model(shared)
    samples = data.sample(draws, 6, "test")
    scores = scores_of(filters, samples, 0.25)
    for run in range(2):
        at = run % len(samples.noise)
        for i in range(6):
            label = int(samples.labels[at, i])
            noise = data.sigma[run] * samples.noise[at, i]
            signal = data.mu[run] * samples.features[at, label]
            plain = torch.relu(filters[run] @ torch.stack([noise, signal], dim=1)).sum(dim=(1, 2))
            torch.testing.assert_close(scores[run, :, i], 0.25 * plain)


def test_losses_are_torch_s_and_a_tie_is_an_error() -> None:
    scores = torch.tensor([[[2.0, 1.0, 0.0], [1.0, 1.0, 3.0]]])
    labels = torch.tensor([[0, 0, 1]])
    loss, error = sample_losses(scores, labels)
    expected = torch.nn.functional.cross_entropy(scores[0].T, labels[0], reduction="none")
    torch.testing.assert_close(loss[0], expected)
    assert error[0].tolist() == [0.0, 1.0, 0.0]
    silent_loss, silent_error = sample_losses(torch.zeros(1, 4, 2), torch.tensor([[0, 3]]))
    assert silent_error[0].tolist() == [1.0, 1.0]
    torch.testing.assert_close(silent_loss, torch.full((1, 2), math.log(4)))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("samples", [40, CHUNK, 2 * CHUNK + 30])
def test_means_over_chunks_are_means_over_all_samples(shared: bool, samples: int) -> None:
    data, draws, filters = model(shared)
    drawn: list[PatchSamples] = []

    def draw(count: int, chunk: int) -> PatchSamples:
        drawn.append(data.sample(draws, count, "test", chunk))
        return drawn[-1]

    found = generalisation(filters, draw, samples, 0.25)
    parts = [sample_losses(scores_of(filters, part, 0.25), part.labels) for part in drawn]
    loss = torch.cat([part[0] for part in parts], dim=1)
    error = torch.cat([part[1] for part in parts], dim=1)
    labels = torch.cat([part.labels for part in drawn], dim=1).expand(2, -1)
    assert loss.shape == (2, samples) and found.samples == samples
    torch.testing.assert_close(found.loss, loss.mean(dim=1))
    torch.testing.assert_close(found.error, error.mean(dim=1))
    for run in range(2):
        for k in range(CLASSES):
            of_class = labels[run] == k
            torch.testing.assert_close(found.class_loss[run, k], loss[run, of_class].mean())
            torch.testing.assert_close(found.class_error[run, k], error[run, of_class].mean())


def test_chunks_are_different_samples_and_do_not_depend_on_the_batch() -> None:
    data, draws, filters = model()
    sizes: list[tuple[int, int]] = []

    def draw(count: int, chunk: int) -> PatchSamples:
        sizes.append((count, chunk))
        return data.sample(draws, count, "test", chunk)

    together = generalisation(filters, draw, CHUNK + 1, 1.0)
    assert sizes == [(CHUNK, 0), (1, 1)]
    one = SignalNoise(CLASSES, D, data.mu[1:], data.sigma[1:])
    own = Draws([5], dtype=torch.float64)
    alone = generalisation(
        filters[1:], lambda count, chunk: one.sample(own, count, "test", chunk), CHUNK + 1, 1.0
    )
    torch.testing.assert_close(alone.loss, together.loss[1:], rtol=1e-12, atol=0)


def test_a_class_that_was_not_drawn_has_no_loss() -> None:
    data, draws, filters = model()

    def draw(count: int, chunk: int) -> PatchSamples:
        seen = data.sample(draws, count, "test", chunk)
        labels = torch.zeros_like(seen.labels)
        return PatchSamples(labels, seen.noise, seen.features, seen.noise_scale, seen.strength)

    found = generalisation(filters, draw, 20, 1.0)
    assert bool(found.class_loss[:, 0].isfinite().all())
    assert bool(found.class_loss[:, 1:].isnan().all() and found.class_error[:, 1:].isnan().all())
    torch.testing.assert_close(found.loss, found.class_loss[:, 0])


def test_a_network_that_knows_the_signals_makes_no_errors_and_one_without_filters_guesses() -> None:
    data, draws, filters = model()
    known = torch.zeros_like(filters)
    known[:, torch.arange(CLASSES), :, torch.arange(CLASSES)] = 5.0

    def draw(count: int, chunk: int) -> PatchSamples:
        return data.sample(draws, count, "test", chunk)

    assert generalisation(known, draw, 100, 1.0).error.tolist() == [0.0, 0.0]
    silent = generalisation(torch.zeros_like(filters), draw, 100, 1.0)
    torch.testing.assert_close(silent.loss, torch.full_like(silent.loss, math.log(CLASSES)))
    assert silent.error.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shared", [True, False])
def test_scores_of_responses_are_those_of_filters(shared: bool) -> None:
    data, draws, filters = model(shared)
    samples = data.sample(draws, 7)
    seen = responses(filters, samples.patches())
    torch.testing.assert_close(
        scores_of_responses(seen, samples, 0.25), scores_of(filters, samples, 0.25)
    )
