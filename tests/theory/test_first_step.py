"""The law of the first step against the step itself, made with numpy and the true softmax."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.theory import first_step as theory
from rarefy.theory.first_step import FirstStep

FILTERS, NETWORKS = 20, 16
FIGURE = FirstStep(
    classes=10, samples=200, d=200, mu=1.0, sigma=1.0, sigma_0=0.01, lr=0.05, output_scale=1.0
)


def changed(**changes: Any) -> FirstStep:
    return dataclasses.replace(FIGURE, **changes)


def take(
    step: FirstStep, networks: int = NETWORKS, filters: int = FILTERS
) -> tuple[np.ndarray, np.ndarray]:
    """(before, after) one full-batch step: (network, class, filter, d)."""
    rng = np.random.default_rng(7)
    t, n, d = step.classes, step.samples, step.d
    before = step.sigma_0 * rng.normal(size=(networks, t, filters, d))
    after = before.copy()
    for w0, w1 in zip(before, after, strict=True):
        label = rng.integers(t, size=n) if step.labels == "drawn" else np.arange(n) % t
        xi = np.concatenate([np.zeros((n, t)), step.sigma * rng.normal(size=(n, d - t))], axis=1)
        on_noise, on_signal = w0 @ xi.T, step.mu * w0[:, :, :t]
        seen = np.maximum(on_noise, 0).sum(axis=1) + np.maximum(on_signal, 0).sum(axis=1)[:, label]
        score = np.exp(step.output_scale * seen)
        hot = np.eye(t)[:, label]
        residual = hot - score / score.sum(axis=0)
        rate = step.lr * step.output_scale / n
        w1 += rate * (residual[:, None, :] * (on_noise >= 0)) @ xi
        w1[:, :, :t] += rate * step.mu * (on_signal >= 0) * (residual @ hot.T)[:, None, :]
    return before, after


def assert_near(samples: np.ndarray, exact: Any, allowance: float = 0.0) -> None:
    """Means over networks, which are independent, within 5 standard errors."""
    error = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - exact) <= 5 * error + allowance).all()


@pytest.mark.quick(
    "0.01-drawn-0.1-1.0",
    "0.001-balanced-1.0-0.05",
    "0.0001-drawn-0.5-0.05",
    "0.001-balanced-0.5-1.0",
)
@pytest.mark.parametrize("output_scale", [1.0, 1 / FILTERS])
@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(
    ("sigma_0", "labels"), [(0.01, "drawn"), (1e-4, "drawn"), (1e-3, "balanced")]
)
def test_the_law_is_that_of_the_step(
    output_scale: float, sigma: float, sigma_0: float, labels: str
) -> None:
    """Allowances: what the law leaves out, unequal logits whose variance adds to v^2."""
    step = changed(sigma=sigma, output_scale=output_scale, sigma_0=sigma_0, labels=labels)
    before, after = take(step)
    moved = after - before
    t = step.classes
    response = (0.5 - 0.5 / math.pi) * (sigma**2 * (step.d - t) + step.mu**2)  # of ReLU
    logits = FILTERS * output_scale**2 * sigma_0**2 * response
    left_out = logits / (t - 1) + 0.01 * (labels == "balanced")
    energy = (moved[..., t:] ** 2).mean(axis=(1, 2, 3))
    assert_near(energy / step.noise_gain**2, 1.0, 2 * left_out)
    total = (after[..., t:] ** 2).mean(axis=(1, 2, 3))
    assert_near(total / (sigma_0**2 + step.noise_gain**2), 1.0, 2 * left_out)
    # signal coordinates: (network, class, filter)
    own0, own = (np.moveaxis(w[:, np.arange(t), :, np.arange(t)], 0, 1) for w in (before, after))
    active = own0 >= 0
    assert (own[~active] == own0[~active]).all()
    gained = np.array([(b - a)[c].mean() for a, b, c in zip(own0, own, active, strict=True)])
    assert_near(gained / step.signal_gain, 1.0, left_out)


@pytest.mark.quick("balanced")
@pytest.mark.parametrize("labels", ["drawn", "balanced"])
def test_activity_and_noise_coordinate(labels: str) -> None:
    """With a single noise coordinate, the one along w0, the correlation is as strong as it gets:
    drawn labels make up for it exactly, balanced ones leave 1 - 1/pi of the variance."""
    step = changed(classes=4, samples=20, d=5, sigma_0=1e-6, labels=labels)
    before, after = take(step, networks=8_000, filters=1)
    ratio = (after - before)[..., 4].mean(axis=2) ** 2 / step.noise_gain**2
    assert_near(ratio.mean(axis=1), 1.0 if labels == "drawn" else 1 - 1 / math.pi, 0.005)
    # the mean along w0 vanishes for both
    along = ((after - before)[..., 4] * np.sign(before[..., 4])).mean(axis=(1, 2))
    assert_near(along / step.noise_gain, 0.0)


# -------------------------------------------------------------------------------------- the paper's


@given(
    samples=st.integers(1, 10**5),
    classes=st.integers(2, 50),
    sigma=st.floats(0.01, 5.0),
    scale=st.floats(0.01, 1.0),
)
def test_the_papers_noise_does_not_know_n(
    samples: int, classes: int, sigma: float, scale: float
) -> None:
    step = changed(samples=samples, classes=classes, sigma=sigma, output_scale=scale)
    factor = theory.paper_noise_std(step) / step.noise_gain
    assert factor == pytest.approx(math.sqrt(samples / (2 * classes)))
    assert theory.paper_signal_coordinate(step) == pytest.approx(
        0.05 * scale * (classes - 1) / (2 * classes**2)
    )
    more = dataclasses.replace(step, samples=4 * samples)
    assert more.noise_gain == pytest.approx(step.noise_gain / 2)
    assert theory.paper_noise_std(more) == theory.paper_noise_std(step)


# --------------------------------------------------------------------------------------- bad values


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: changed(classes=1), "classes=1: must be at least 2"),
    (lambda: changed(d=10), "d=10: must be more than classes=10"),
    (lambda: changed(samples=0), "samples=0: must be at least 1"),
    (lambda: changed(mu=0.0), "mu=0.0: must be finite and more than 0"),
    (lambda: changed(sigma_0=0.0), "sigma_0=0.0: must be finite and more than 0"),
    (lambda: changed(lr=math.inf), "lr=inf: must be finite and more than 0"),
    (lambda: changed(output_scale=-1.0), "output_scale=-1.0: must be finite"),
    (lambda: changed(sigma=-0.1), "sigma=-0.1: must be finite and at least 0"),
    (lambda: changed(sigma=math.nan), "sigma=nan: must be finite and at least 0"),
    (lambda: changed(labels="even"), "labels='even': must be one of drawn, balanced"),
    (lambda: changed(labels="balanced", samples=9), "samples=9: balanced needs one per class"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_a_value_that_makes_no_sense_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
