"""Lemmas 3-7: every measure against a second way, and on cases whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_noise import special_direction
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.patches import PatchSamples, labels_by_size
from rarefy.measure.generalisation import sample_losses, scores_of
from rarefy.measure.noise_neurons import (
    ResidualMemory,
    active_share,
    by_chunks,
    equivalent_length,
    log_imbalance,
    memorisation,
    noise_response,
    noise_spectrum,
    numerical_rank,
    odds_against,
    own_responses,
)
from rarefy.nets.patch_cnn import initial_filters
from rarefy.train.descent import State, descend
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier

F64 = torch.float64
CLASSES, D, M, OWN = 3, 20, 6, 4


def setting(dtype: torch.dtype = F64) -> tuple[ClassNoise, PatchSamples, Tensor, Draws]:
    draws = Draws([3, 4], dtype=dtype)
    special = torch.tensor([[1.0] * CLASSES, [2.5] * CLASSES], dtype=F64)
    table = special_direction(special, D, CLASSES).to(dtype)
    data = ClassNoise(table, torch.full((2, CLASSES), 1.5, dtype=dtype))
    samples = data.sample(draws, labels_by_size(torch.full((1, CLASSES), OWN)))
    return data, samples, initial_filters(draws, CLASSES, M, D, "gaussian").to(dtype), draws


# ------------------------------------------------------------------------------------------ Lemma 3


@pytest.mark.parametrize("m", [6, 30])
def test_the_spectrum_is_that_of_the_product_with_the_matrix(m: int) -> None:
    data, _, _, draws = setting()
    filters = initial_filters(draws, CLASSES, m, D, "gaussian").to(F64)
    found = noise_spectrum(filters, data.eigenvalues)
    matrix = torch.diag_embed(data.eigenvalues)
    expected = torch.linalg.svdvals(filters @ matrix)
    assert found.dtype == F64 and found.shape == (2, CLASSES, min(m, D))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-7)
    assert bool((found[..., :-1] >= found[..., 1:]).all())


@given(rank=st.integers(0, M))
@settings(max_examples=10, deadline=None)
def test_the_rank_is_the_number_of_directions_put_in(rank: int) -> None:
    generator = torch.Generator().manual_seed(rank)
    filters = torch.randn(1, 1, M, max(rank, 1), generator=generator, dtype=F64)
    filters = filters @ torch.randn(1, 1, max(rank, 1), D, generator=generator, dtype=F64)
    filters = (filters if rank else torch.zeros_like(filters)).float()  # rounding is part of it
    spectrum = noise_spectrum(filters, torch.ones(1, 1, D))
    assert numerical_rank(spectrum, D).tolist() == [[rank]]


def test_the_rank_has_a_tolerance_that_weights_of_float32_justify() -> None:
    tolerance = 50 * torch.finfo(torch.float32).eps
    spectrum = torch.tensor([[[1.0, 2 * tolerance, 0.5 * tolerance]]], dtype=F64)
    assert numerical_rank(spectrum, 50).tolist() == [[2]]


# ------------------------------------------------------------------------------ Lemmas 4, 5, Def. 1


def test_responses_activity_and_lengths_are_those_of_a_loop() -> None:
    data, samples, filters, _ = setting()
    own = own_responses(filters, samples)
    share, pooled = active_share(filters, samples), noise_response(filters, samples)
    length = equivalent_length(filters, samples, data.eigenvalues)
    for run in range(2):
        for i in range(len(samples)):
            k = int(samples.labels[0, i])
            xi = samples.noise[run, i]
            seen = filters[run, k] @ xi
            torch.testing.assert_close(own[run, i], seen)
            assert float(share[run, i]) == pytest.approx(float((seen > 0).double().mean()))
            for j in range(CLASSES):
                expected = torch.relu(filters[run, j] @ xi).sum()
                assert float(pooled[run, j, i]) == pytest.approx(float(expected))
            together = filters[run, k][seen > 0].sum(dim=0)
            expected = (torch.diag(data.eigenvalues[run, k]) @ together).norm()
            assert float(length[run, i]) == pytest.approx(float(expected))


def test_noise_is_measured_in_its_scale() -> None:
    _, samples, filters, _ = setting()
    larger = PatchSamples(
        samples.labels, samples.noise, samples.features, 3 * samples.noise_scale, samples.strength
    )
    for measure in (own_responses, noise_response):
        torch.testing.assert_close(measure(filters, larger), 3 * measure(filters, samples))
    assert torch.equal(active_share(filters, larger), active_share(filters, samples))


def test_random_filters_are_half_active_and_opposite_ones_never() -> None:
    data, samples, _, draws = setting()
    many = initial_filters(draws, CLASSES, 1000, D, "gaussian").to(F64)
    assert active_share(many, samples).mean().item() == pytest.approx(0.5, abs=0.01)
    label = int(samples.labels[0, 0])
    against = torch.zeros_like(many)
    against[:, label] = -samples.noise[:, None, 0]
    assert active_share(against, samples)[:, 0].tolist() == [0.0, 0.0]
    assert equivalent_length(against, samples, data.eigenvalues)[:, 0].tolist() == [0.0, 0.0]


def test_memory_of_own_and_other_noise_by_hand() -> None:
    # class 0 has samples 0 and 1, class 1 sample 2
    response = torch.tensor([[[4.0, 2.0, 1.0], [3.0, 0.0, 6.0]]])
    one_hot = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    found = memorisation(response, one_hot, factor=3)
    assert found.own.tolist() == [[3.0, 6.0]] and found.other.tolist() == [[1.0, 1.5]]
    assert found.worst.tolist() == [[2.0, 2.0]]
    assert found.pairs.tolist() == [[0.5, 0.5]]  # 4 >= 3 but 2 < 3; 6 < 9 but 6 >= 0
    unseen = torch.tensor([[[4.0, 2.0, 0.0], [0.0, 0.0, 6.0]]])
    assert memorisation(unseen, one_hot).worst.tolist() == [[math.inf, math.inf]]


def test_memory_needs_two_classes_and_a_factor() -> None:
    response = torch.ones(1, 2, 2)
    alone = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    with pytest.raises(UsageError, match="one_hot=.*at least two classes"):
        memorisation(response, alone)
    with pytest.raises(UsageError, match="factor=0: must be more than 0"):
        memorisation(response, torch.eye(2)[None], factor=0)


# -------------------------------------------------------------------------------- (8) and Lemma 7


def test_odds_give_loss_and_residual_even_where_they_are_tiny() -> None:
    scores = torch.tensor([[[2.0, -1.0, 60.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]]], dtype=F64)
    labels = torch.tensor([[0, 0, 0]])
    odds = odds_against(scores, labels)
    loss, _ = sample_losses(scores, labels)
    softplus = torch.nn.functional.softplus(odds, threshold=1000)
    torch.testing.assert_close(softplus[:, :2], loss[:, :2])
    probability = torch.softmax(scores, dim=1)[:, 0]
    torch.testing.assert_close(torch.sigmoid(odds)[:, :2], 1 - probability[:, :2])
    assert float(torch.sigmoid(odds)[0, 2]) == pytest.approx(2 * math.exp(-60))


def test_imbalance_is_the_quotient_of_residuals() -> None:
    odds = torch.tensor([[0.0, -1.0, 2.0]], dtype=F64)
    residual = torch.sigmoid(odds)
    expected = (residual.max() / residual.min()).log()
    assert log_imbalance(odds).item() == pytest.approx(expected.item())
    assert log_imbalance(torch.tensor([[-500.0, 3.0]])).item() == pytest.approx(500, abs=0.1)
    assert log_imbalance(torch.zeros(2, 5, 3)).tolist() == [[0.0] * 5] * 2


def test_residuals_are_summed_over_the_updates_that_were_made() -> None:
    _, samples, start, _ = setting()
    steps, lr, scale = 12, 0.5, 1 / M
    rate = torch.tensor([lr, lr], dtype=F64)
    tracker = ResidualMemory(samples, scale, rate, steps)

    def stop(state: State) -> None:
        if state.step == 5:
            rate[1] = 0.0  # the second run makes five updates

    kept: list[Tensor] = []

    def keep(state: State) -> Tensor:
        kept.append(state.parameters["filters"])
        return state.loss

    problem = PatchClassifier.of(samples, scale)
    trajectory = descend(
        problem,
        {"filters": start},
        lambda step: None,
        Sgd(rate),
        steps,
        trackers={"odds": tracker, "keep": keep},
        record=range(steps + 1),
        after_update=stop,
    )
    assert trajectory.records["odds"].shape == (2, steps + 1, len(samples))
    expected = torch.zeros(2, len(samples), dtype=F64)
    for step in range(steps):
        logits = torch.softmax(scores_of(kept[step], samples, scale), dim=1)
        own = logits.gather(1, samples.labels.expand(2, -1)[:, None])[:, 0]
        expected[0] += lr * (1 - own[0])
        expected[1] += lr * (1 - own[1]) * (step < 5)
    torch.testing.assert_close(tracker.total, expected)
    for k in range(CLASSES):
        here = expected[:, samples.labels[0] == k].numpy()
        np.testing.assert_allclose(
            tracker.stored()[:, k].numpy(), np.linalg.norm(here, axis=-1), rtol=1e-10
        )


def test_the_sum_explains_the_coefficients_of_filters_that_were_always_active() -> None:
    """A second way to (8): what descent stores of a sample in a filter that never let go of it."""
    _, samples, start, _ = setting()
    steps, scale = 15, 1 / M
    rate = torch.full((2,), 0.5, dtype=F64)
    tracker = ResidualMemory(samples, scale, rate, steps)
    parameters = {
        "filters": start,
        "coefficients": start.new_zeros(2, CLASSES, M, len(samples) + CLASSES),
    }
    seen: list[Tensor] = []

    def active(state: State) -> Tensor:
        seen.append(own_responses(state.parameters["filters"], samples) >= 0)
        return state.loss

    end = descend(
        PatchClassifier.of(samples, scale),
        parameters,
        lambda step: None,
        Sgd(rate),
        steps,
        trackers={"odds": tracker, "active": active},
        record=range(steps + 1),
    ).parameters
    always = torch.stack(seen[:-1]).all(dim=0)  # (run, n, m)
    label = samples.labels.expand(2, -1)[:, None, None, :].expand(-1, 1, M, -1)
    stored = end["coefficients"][..., : len(samples)].gather(1, label)[:, 0].transpose(1, 2)
    expected = (scale / len(samples) * tracker.total)[:, :, None].expand_as(stored)
    assert always.any()
    torch.testing.assert_close(stored[always], expected[always])


def test_a_step_left_out_is_refused() -> None:
    _, samples, start, _ = setting()
    tracker = ResidualMemory(samples, 1.0, torch.ones(2, dtype=F64), 5)
    with pytest.raises(UsageError, match="step=2: must be 0: every step is summed"):
        tracker(State(2, {"filters": start}, torch.zeros(2)))


def test_chunks_are_joined_and_all_drawn() -> None:
    data, _, filters, draws = setting()
    asked: list[tuple[int, int]] = []

    def draw(count: int, chunk: int) -> PatchSamples:
        asked.append((count, chunk))
        return data.sample(draws, torch.arange(count)[None] % CLASSES, "test", chunk)

    found = by_chunks(filters, draw, 300, active_share)
    assert asked == [(250, 0), (50, 1)] and found.shape == (2, 300)
    assert torch.equal(found[:, 250:], active_share(filters, draw(50, 1)))
