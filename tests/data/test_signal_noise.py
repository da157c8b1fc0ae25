"""The data model has each property of 002 Definition 3.1.

Statistical bounds are five standard errors or a p-value of 1e-3; the draws are fixed, so a bound is
met always or never.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.signal_noise import LABELS, SignalNoise

SIGMAS, LEAST_P = 5.0, 1e-3


def draws_of(runs: int, name: str = "signal", dtype: torch.dtype = torch.float32) -> Draws:
    return Draws([key(name, run) for run in range(runs)], dtype=dtype)


def model(classes: int = 3, d: int = 8, runs: int = 2, labels: str = "drawn") -> SignalNoise:
    mu, sigma = 1 + torch.arange(runs).float(), 0.5 + torch.arange(runs).float()
    return SignalNoise(classes, d, mu, sigma, labels)


@settings(deadline=None, max_examples=30)
@given(
    classes=st.integers(2, 6),
    extra=st.integers(1, 5),
    n=st.integers(1, 20),
    keys=st.sampled_from([1, 3]),
    labels=st.sampled_from(LABELS),
)
def test_noise_is_zero_on_the_signals_and_signals_are_axes(
    classes: int, extra: int, n: int, keys: int, labels: str
) -> None:
    d = classes + extra
    data = model(classes, d, 3, labels).sample(draws_of(keys), n)
    assert data.labels.shape == (keys, n) and data.labels.dtype == torch.int64
    assert data.noise.shape == (keys, n, d) and data.features.shape == (keys, classes, d)
    assert data.noise_scale.shape == (3,) and data.strength.shape == (3, classes)
    assert bool((data.noise[:, :, :classes] == 0).all())
    assert bool((data.noise[:, :, classes:] != 0).any())
    assert torch.equal(data.features[-1], torch.eye(classes, d))
    assert int(data.labels.min()) >= 0 and int(data.labels.max()) < classes
    # u_k^T xi = 0 for every class and sample
    assert bool((data.noise @ data.features.transpose(1, 2) == 0).all())


def test_the_noise_is_normal_with_the_runs_own_std() -> None:
    data = model(classes=3, d=13).sample(draws_of(2, "std"), 4000)
    for run in range(2):
        values = (data.noise * data.noise_scale[:, None, None])[run, :, 3:].double()
        std = 0.5 + run
        error = std / math.sqrt(2 * values.numel())
        assert abs(values.std().item() - std) < SIGMAS * error
        assert abs(values.mean().item()) < SIGMAS * std / math.sqrt(values.numel())
        assert stats.kstest(values.flatten().numpy() / std, "norm").pvalue > LEAST_P
        covariance = values.T @ values / len(values) / std**2 - torch.eye(10)
        assert covariance.abs().max() < SIGMAS * math.sqrt(2 / len(values))


def test_drawn_labels_are_uniform_and_balanced_ones_as_equal_as_n_allows() -> None:
    n = 3001
    drawn = model(classes=4).sample(draws_of(2, "labels"), n).class_sizes()
    error = math.sqrt(n * 0.25 * 0.75)
    assert (drawn - n / 4).abs().max() < SIGMAS * error
    assert not torch.equal(drawn[0], drawn[1])
    balanced = model(classes=4, labels="balanced").sample(draws_of(2), n).class_sizes()
    assert balanced.tolist() == [[751.0, 750.0, 750.0, 750.0]] * 2


def test_one_key_is_shared_by_all_runs_and_a_run_draws_the_same_alone() -> None:
    data = model(runs=3)
    together, shared = data.sample(draws_of(3), 6), data.sample(draws_of(1), 6)
    assert together.noise.shape[0] == 3 and shared.noise.shape[0] == 1
    assert torch.equal(together.noise[0], shared.noise[0])
    assert torch.equal(together.labels[0], shared.labels[0])
    assert not torch.equal(together.noise[0], together.noise[1])
    assert shared.runs == 3 and shared.scales().shape == (3, 9)


def test_streams_and_steps_draw_afresh_and_repeat() -> None:
    data, draws = model(runs=1), draws_of(1)
    first = data.sample(draws, 5)
    assert torch.equal(first.noise, data.sample(draws_of(1), 5).noise)
    for other in (data.sample(draws, 5, "test"), data.sample(draws, 5, step=1)):
        assert not torch.equal(first.noise, other.noise)


def test_float64_runs_see_the_same_noise() -> None:
    data = model()
    single, double = (data.sample(draws_of(2, dtype=t), 5) for t in (torch.float32, torch.float64))
    assert double.noise.dtype == torch.float64 == double.features.dtype
    torch.testing.assert_close(single.noise, double.noise.float())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": 1}, "classes=1: must be at least 2"),
        ({"classes": 8}, "classes=8: must be below d=8: each class has a coordinate of its own"),
        ({"d": 2}, "classes=3: must be below d=2: each class has a coordinate of its own"),
        ({"mu": torch.tensor([1.0, 0.0])}, "mu=0.0: must be finite and more than 0"),
        ({"mu": torch.tensor([-1.0])}, "mu=-1.0: must be finite and more than 0"),
        ({"mu": torch.tensor([math.inf])}, "mu=inf: must be finite and more than 0"),
        ({"sigma": torch.tensor([-0.5])}, "sigma=-0.5: must be finite and at least 0"),
        ({"sigma": torch.tensor([math.nan])}, "sigma=nan: must be finite and at least 0"),
        ({"labels": "sorted"}, "labels='sorted': must be one of drawn, balanced"),
    ],
)
def test_values_outside_the_model_are_refused(changed: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"classes": 3, "d": 8, "mu": torch.ones(2), "sigma": torch.ones(2)}
    with pytest.raises(UsageError, match=f"^{message}$"):
        SignalNoise(**{**good, **changed})


def test_no_samples_are_refused() -> None:
    with pytest.raises(UsageError, match="^samples=0: must be at least 1$"):
        model().sample(draws_of(1), 0)


def test_no_noise_is_allowed() -> None:
    data = SignalNoise(2, 4, torch.ones(1), torch.zeros(1)).sample(draws_of(1), 3)
    assert bool((data.noise_norms() == 0).all())
