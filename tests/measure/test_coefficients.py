"""gamma and rho by recursion (002 Def. D.1) and by projection (Def. 5.1), which must agree."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from projected import projected_coefficients
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.patches import PatchSamples
from rarefy.data.signal_noise import SignalNoise
from rarefy.measure.coefficients import Coefficients, accumulated_coefficients
from rarefy.train.descent import descend
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier

RUNS, M = 2, 3


def trained(
    key: int, classes: int, samples: int, d: int, steps: int, shared: bool = False
) -> tuple[PatchSamples, Tensor, dict[str, Tensor]]:
    """Samples, initial filters and what descent made of them, in float64."""
    mu = torch.tensor([1.0, 3.0], dtype=torch.float64)
    sigma = torch.tensor([0.5, 0.1], dtype=torch.float64)
    draws = Draws([key] if shared else [key, key + 1], dtype=torch.float64)
    data = SignalNoise(classes, d, mu, sigma).sample(draws, samples)
    start = 0.01 * Draws([key, key + 1], dtype=torch.float64).normal("w", (classes, M, d))
    nothing = start.new_zeros(RUNS, classes, M, samples + classes)
    found = descend(
        PatchClassifier.of(data, 1 / M),
        {"filters": start, "coefficients": nothing},
        lambda step: None,
        Sgd(0.5),
        steps,
    )
    return data, start, found.parameters


@settings(max_examples=15, deadline=None)
@given(
    key=st.integers(0, 10**6),
    classes=st.integers(2, 4),
    samples=st.integers(2, 8),
    room=st.integers(0, 10),
    shared=st.booleans(),
)
def test_recursion_and_projection_agree(
    key: int, classes: int, samples: int, room: int, shared: bool
) -> None:
    d = max(samples + classes + room, 2 * classes)
    data, start, end = trained(key, classes, samples, d, 20, shared)
    recursion = accumulated_coefficients(end["coefficients"], data)
    projection = projected_coefficients(start, end["filters"], data)
    for first, second in ((recursion.gamma, projection.gamma), (recursion.rho, projection.rho)):
        # patches in as many dimensions as there are of them can be nearly dependent
        torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shared", [True, False])
def test_filters_are_the_initial_ones_plus_the_combination(shared: bool) -> None:
    """Def. 5.1: w = w(0) + sum gamma mu^-2 mu_tau + sum rho |xi_i|^-2 xi_i."""
    data, start, end = trained(3, 3, 6, 40, 50, shared)
    held = accumulated_coefficients(end["coefficients"], data)
    noise = data.noise_scale[:, None, None] * data.noise
    signal = data.strength[:, :, None] * data.features
    norms = noise.square().sum(dim=2)
    torch.testing.assert_close(norms, data.noise_norms())
    whole = (
        start
        + torch.einsum("rkmt,rtd->rkmd", held.gamma, signal / data.strength[:, :, None] ** 2)
        + torch.einsum("rkmn,rnd->rkmd", held.rho, noise / norms[:, :, None])
    )
    torch.testing.assert_close(end["filters"], whole, rtol=1e-12, atol=1e-13)


def test_the_recursion_is_that_of_definition_d1() -> None:
    """(7b) and (7c), one update, written out for one run."""
    data, start, end = trained(11, 2, 4, 30, 1)
    held, lr, scale = accumulated_coefficients(end["coefficients"], data), 0.5, 1 / M
    for run in range(RUNS):
        noise = data.noise_scale[run] * data.noise[run]
        mu = data.strength[run, 0]
        signal = mu * data.features[run]
        on_noise, on_signal = start[run] @ noise.T, start[run] @ signal.T
        labels = data.labels[run]
        scores = scale * (
            torch.relu(on_noise).sum(dim=1) + torch.relu(on_signal).sum(dim=1)[:, labels]
        )
        minus = torch.nn.functional.one_hot(labels, 2).T - torch.softmax(scores, dim=0)
        step = lr * scale / len(data)
        for j in range(2):
            for r in range(M):
                for tau in range(2):
                    expected = minus[j, labels == tau].sum() * (on_signal[j, r, tau] >= 0) * mu**2
                    torch.testing.assert_close(held.gamma[run, j, r, tau], step * expected)
                for i in range(len(data)):
                    norm = noise[i] @ noise[i]
                    expected = minus[j, i] * (on_noise[j, r, i] >= 0) * norm
                    torch.testing.assert_close(held.rho[run, j, r, i], step * expected)


def test_own_coefficients_are_those_of_a_class_and_of_a_sample_s_class() -> None:
    gamma = torch.arange(2 * 3 * 4 * 3, dtype=torch.float64).reshape(2, 3, 4, 3)
    rho = torch.arange(2 * 3 * 4 * 5, dtype=torch.float64).reshape(2, 3, 4, 5)
    held = Coefficients(gamma, rho)
    labels = torch.tensor([[0, 1, 2, 2, 0]])
    own_rho = held.own_rho(torch.nn.functional.one_hot(labels, 3).double())
    for run in range(2):
        for r in range(4):
            for k in range(3):
                assert held.own_gamma[run, k, r] == gamma[run, k, r, k]
            for i, label in enumerate(labels[0].tolist()):
                assert own_rho[run, r, i] == rho[run, label, r, i]
