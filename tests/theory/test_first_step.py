"""The law of the first step against the step itself, made with numpy and the true softmax."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.theory import first_step as theory
from rarefy.theory.first_step import FirstStep

FILTERS, NETWORKS = 20, 16
FIGURE = FirstStep(
    classes=10, samples=200, d=200, mu=1.0, sigma=1.0, sigma_0=0.01, lr=0.05, output_scale=1.0
)
KEEPS = np.array([1, 3, 10, 30, 80, 150])


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


def assert_near(
    samples: np.ndarray, exact: Any, allowance: float = 0.0, least_error: Any = 0.0
) -> None:
    """Means over networks, which are independent, within 5 standard errors."""
    error = np.maximum(samples.std(axis=0, ddof=1) / math.sqrt(len(samples)), least_error)
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
    apart = ~np.eye(t, dtype=bool)
    others0, others = (w[..., :t].transpose(0, 1, 3, 2)[:, apart] for w in (before, after))
    lost = np.array([(a - b)[a >= 0].mean() for a, b in zip(others0, others, strict=True)])
    assert_near(lost / step.other_loss, 1.0, 3 * math.sqrt(left_out))
    # ranks
    rank = (np.abs(after) > np.abs(own)[..., None]).sum(axis=3)
    for group, chosen in (("active", active), ("inactive", ~active), ("all", active | True)):
        found = [
            [(r[c] < keep).mean() for keep in KEEPS] for r, c in zip(rank, chosen, strict=True)
        ]
        exact = theory.retained_share(KEEPS, step, group)
        # of rare events a spread over few networks says little: not below the binomial one
        binomial = np.sqrt(exact * (1 - exact) / chosen.sum())
        assert_near(np.array(found), exact, 0.002, binomial)
    order = np.argsort(-np.abs(after), axis=3)
    kept = np.cumsum(order >= t, axis=3)[..., KEEPS - 1].mean(axis=(1, 2))
    assert_near(kept, theory.kept_noise(KEEPS, step), 0.002 * t)


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


# ------------------------------------------------------------------------------------------- limits


def test_without_a_step_every_rank_is_as_likely() -> None:
    step = changed(lr=1e-9)
    keep = np.arange(1, 201)
    for group in theory.GROUPS:
        share = theory.retained_share(keep, step, group)
        np.testing.assert_allclose(share, keep / 200, atol=1e-3)
    np.testing.assert_allclose(theory.kept_noise(keep, step), keep * 0.95, atol=0.01)
    assert theory.lower_keep(step) == 100


def test_without_initial_weights_the_signal_stands_out() -> None:
    """Signal over noise after one step: (mu/sigma) sqrt(2 n (1/T)(1 - 1/T)) = 6 at sigma = 1."""
    step = changed(sigma_0=1e-9, labels="balanced")
    assert step.signal_gain / step.noise_gain == pytest.approx(6.0)
    assert theory.retained_share(1, step) > 0.99
    # what is not active keeps its tiny initial weight, below every noise coordinate
    assert theory.retained_share(190, step, "inactive") < 1e-6
    assert theory.lower_keep(step) == 1


def test_a_filter_may_see_no_sample_of_its_class() -> None:
    """n = T = 10: 35 % of the classes have no sample, their signal does not move at all."""
    step = changed(samples=10, sigma_0=1e-9)
    assert theory.retained_share(150, step) == pytest.approx(1 - 0.9**10, abs=0.005)


def test_everything_kept() -> None:
    for sigma in (0.1, 1.0):
        step = changed(sigma=sigma)
        assert theory.retained_share(200, step) == pytest.approx(1)
        assert theory.kept_noise(200, step) == pytest.approx(190)
        # Prop. 5.2, with d - T for d
        dense = 200 / 10 / (sigma**2 * 190)
        assert theory.growth_ratio(200, step) == pytest.approx(dense)


def test_no_noise() -> None:
    step = changed(sigma=0.0)
    assert step.noise_gain == 0
    assert np.isinf(theory.growth_ratio(KEEPS, step)).all()
    assert theory.upper_keep(step) == 200


@settings(deadline=None, max_examples=8)
@given(
    sigma=st.floats(0.05, 3.0),
    sigma_0=st.floats(1e-5, 0.1),
    scale=st.sampled_from([1.0, 0.05]),
    labels=st.sampled_from(theory.LABELS),
)
def test_shares_move_with_k_and_with_the_signal(
    sigma: float, sigma_0: float, scale: float, labels: str
) -> None:
    step = changed(
        d=30, classes=3, samples=30, sigma=sigma, sigma_0=sigma_0, output_scale=scale, labels=labels
    )
    keep = np.arange(1, 31)
    share = theory.retained_share(keep, step)
    assert (np.diff(share) >= -1e-12).all() and share[-1] == pytest.approx(1)
    if labels == "balanced":  # else another class, drawn more often, gains on the own one as well
        strong = theory.retained_share(keep, dataclasses.replace(step, mu=2.0))
        assert (strong >= share - 2e-3).all()
    assert (share >= theory.retained_share(keep, step, "inactive") - 2e-3).all()
    noise = theory.kept_noise(keep, step)
    assert (np.diff(noise) >= -5e-3).all() and (noise <= keep).all()
    for law in theory.rank_laws(step):
        assert law.sum() == pytest.approx(1) and (law >= 0).all() and not law.flags.writeable
    lower = theory.lower_keep(step)
    assert share[lower - 1] >= 0.5 and (lower == 1 or share[lower - 2] < 0.5)


# ------------------------------------------------------------------------------------------- window


def test_upper_end_is_where_signal_and_noise_grow_alike() -> None:
    step = changed(sigma_0=1e-4, sigma=0.5)
    upper = theory.upper_keep(step)
    ratio = theory.growth_ratio(np.array([upper, upper + 1]), step)
    assert ratio[0] >= 1 > ratio[1]
    # all active filters keep their signal: K is (n/T) mu^2/sigma^2 = 80 and the signals' share
    assert 80 <= upper <= 85
    assert theory.upper_keep(changed(sigma=0.1)) == 200
    assert theory.upper_keep(changed(sigma=5.0)) == 0
    assert theory.lower_keep(step) < upper


def test_at_the_figures_values_the_initial_weights_decide() -> None:
    """sigma_0 = 0.01 is twice the signal's step and 13 times the noise's: the lower end does not
    depend on sigma, and from sigma = 0.5 on lies above the upper one."""
    steps = [changed(sigma=sigma) for sigma in (0.1, 0.3, 0.5, 0.7, 1.0)]
    windows = [(theory.lower_keep(step), theory.upper_keep(step)) for step in steps]
    assert {lower for lower, _ in windows} <= {52, 53}
    assert [upper >= lower for lower, upper in windows] == [True, True, False, False, False]
    assert FIGURE.sigma_0 / FIGURE.signal_gain == pytest.approx(20 / 9)
    assert FIGURE.sigma_0 / FIGURE.noise_gain == pytest.approx(40 / 3)


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
    (lambda: theory.retained_share(0, FIGURE), "keep=0: must be whole numbers between 1 and d=200"),
    (lambda: theory.retained_share(201, FIGURE), "keep=201: must be whole numbers"),
    (lambda: theory.kept_noise(2.5, FIGURE), "keep=2.5: must be whole numbers"),
    (lambda: theory.retained_share(3, FIGURE, "some"), "group='some': must be one of active"),
    (lambda: theory.lower_keep(FIGURE, 1.0), "share=1.0: must lie between 0 and 1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_a_value_that_makes_no_sense_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
