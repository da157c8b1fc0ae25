"""Formulas of 003: from real matrices, against each other, and the first step of a real network."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rarefy.core.errors import UsageError
from rarefy.theory import benign as theory

seeds = st.integers(0, 10**6)


def drawn(seed: int, classes: int = 4, d: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """gram of random matrices, sizes, norms."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(classes, d, d)) * rng.exponential(size=(classes, 1, d))
    gram = np.square(np.einsum("iab,jac->ijbc", a, a)).sum(axis=(2, 3))
    return gram, rng.integers(1, 500, size=classes), rng.exponential(size=classes)


# ----------------------------------------------------------------------------------- the two ratios


@given(seeds)
def test_ratios_are_what_the_theorem_prints(seed: int) -> None:
    gram, sizes, norms = drawn(seed)
    gamma = theory.noise_correlation_ratio(gram, sizes)
    signal = theory.signal_ratio(gram, sizes, norms)
    for k in range(4):
        for j in range(4):
            noise = sizes[j] * gram[k, j]
            assert gamma[k, j] == pytest.approx(sizes[k] * gram[k, k] / noise)
            assert signal[k, j] == pytest.approx(sizes[k] ** 2 * norms[k] ** 4 / noise)
    np.testing.assert_allclose(np.diagonal(gamma), 1.0)
    # Cauchy-Schwarz for tr(Sigma_k Sigma_j)
    assert (gamma * gamma.T >= 1 - 1e-12).all()


@given(seeds, st.floats(0.1, 10.0))
def test_what_the_ratios_do_not_depend_on(seed: int, factor: float) -> None:
    gram, sizes, norms = drawn(seed)
    gamma = theory.noise_correlation_ratio(gram, sizes)
    np.testing.assert_allclose(theory.noise_correlation_ratio(factor * gram, sizes), gamma)
    np.testing.assert_allclose(theory.noise_correlation_ratio(gram, factor * sizes), gamma)
    # more data of every class helps features in proportion; the noise as its square of variance
    signal = theory.signal_ratio(gram, sizes, norms)
    np.testing.assert_allclose(theory.signal_ratio(gram, factor * sizes, norms), factor * signal)
    np.testing.assert_allclose(theory.signal_ratio(gram, sizes, factor * norms), factor**4 * signal)
    np.testing.assert_allclose(theory.signal_ratio(factor * gram, sizes, norms), signal / factor)


@given(seeds, st.integers(0, 3), st.floats(1.1, 50.0))
def test_more_of_one_class_hurts_the_others(seed: int, class_: int, factor: float) -> None:
    """'Increasing majority hurts minority': both ratios and the bound of the others fall."""
    gram, sizes, norms = drawn(seed)
    grown = sizes.astype(float)
    grown[class_] *= factor
    others = np.arange(4) != class_
    for of in (
        lambda s: theory.binding(theory.noise_correlation_ratio(gram, s)),
        lambda s: theory.binding(theory.signal_ratio(gram, s, norms)),
    ):
        before, after = of(sizes), of(grown)
        rounding = 1e-9 * np.abs(before) + 1e-12
        assert (after[others] <= (before + rounding)[others]).all()
        assert after[class_] >= (before - rounding)[class_]


def test_orthogonal_noise_makes_no_mistakes() -> None:
    gram = np.diag([2.0, 3.0, 4.0])
    gamma = theory.noise_correlation_ratio(gram, [1, 1, 1])
    assert np.isinf(theory.binding(gamma)).all()
    one_pair = gram.copy()
    one_pair[0, 1] = one_pair[1, 0] = 0.5
    found = theory.binding(theory.noise_correlation_ratio(one_pair, [1, 1, 1]))
    assert found.tolist() == [4.0, 6.0, math.inf]


def test_leading_axes_broadcast() -> None:
    cases = [drawn(seed) for seed in range(3)]
    gram, sizes, norms = (np.stack(each) for each in zip(*cases, strict=True))
    gamma = theory.noise_correlation_ratio(gram, sizes)
    signal = theory.signal_ratio(gram, sizes, norms)
    regime = theory.regime(gram, sizes, norms)
    assert gamma.shape == (3, 4, 4) and regime.shape == (3, 4)
    for i, (g, s, u) in enumerate(cases):
        np.testing.assert_allclose(gamma[i], theory.noise_correlation_ratio(g, s))
        np.testing.assert_allclose(theory.binding(signal)[i], theory.binding(signal[i]))
        assert (regime[i] == theory.regime(g, s, u)).all()


# ---------------------------------------------------------------------------------------- regimes


def two_classes(signal: float, gamma: float) -> tuple[np.ndarray, list[int], list[float]]:
    """Equal classes of one sample whose two ratios are as given."""
    return np.array([[gamma, 1.0], [1.0, gamma]]), [1, 1], [signal**0.25] * 2


@pytest.mark.parametrize(
    ("signal", "gamma", "expected"),
    [
        (9.0, 1.0, "features"),
        (4.0, 9.0, "features"),  # both: the statement for all data
        (3.9, 9.0, "tail"),
        (0.1, 5.0, "tail"),
        (0.1, 4.9, "open"),
        (3.9, 1.0, "open"),
        (2.0, 2.0, "harmful"),
        (0.0, 1.0, "harmful"),
        (2.0, 2.1, "open"),
        (2.1, 2.0, "open"),
    ],
)
def test_regimes_have_their_edges(signal: float, gamma: float, expected: str) -> None:
    case = two_classes(signal, gamma)
    found = theory.regime(*case, features=4.0 - 1e-9, tail=5.0, harmful=2.0 + 1e-9)
    assert found.tolist() == [expected] * 2


def test_a_large_class_is_safe_and_a_small_one_is_not() -> None:
    gram = np.array([[2.0, 1.0], [1.0, 2.0]])
    found = theory.regime(gram, [100, 10], [1e-3, 1e-3])
    assert found.tolist() == ["tail", "harmful"]


# ------------------------------------------------------------------------------------ training loss


@pytest.mark.parametrize("scale", ["mean", "sum"])
def test_the_first_fall_of_the_loss(scale: str) -> None:
    """One step of a real network, small weights, nearly orthogonal noise: within 3 % (what the
    other samples' noise adds, n gram/(2 pi trace) against trace, is below 1 %)."""
    rng = np.random.default_rng(3)
    classes, size, d, m, sigma, norm = 3, 4, 1500, 400, 0.05, 1.5
    n, trace = classes * size, 0.05**2 * (d - classes)
    output_scale = 1 / m if scale == "mean" else 1.0
    lr = 1e-8 / output_scale  # the step is small against the weights: nobody changes side
    label = np.repeat(np.arange(classes), size)
    xi = np.zeros((n, d))
    xi[:, classes:] = sigma * rng.normal(size=(n, d - classes))
    u = norm * np.eye(classes, d)[label]
    w = 1e-5 * rng.normal(size=(classes, m, d))

    def loss(weights: np.ndarray) -> np.ndarray:
        seen = sum(np.maximum(weights @ x.T, 0).sum(axis=1) for x in (xi, u))
        score = output_scale * seen
        return special.logsumexp(score, axis=0) - score[label, np.arange(n)]

    pull = (np.eye(classes)[:, label] - 1 / classes) * lr * output_scale / n
    step = sum(((w @ x.T >= 0) * pull[:, None, :]) @ x for x in (xi, u))
    fall = (loss(w) - loss(w + step)).mean()
    predicted = theory.first_loss_drop(size, norm, trace, n, classes, lr, m, output_scale)
    assert fall == pytest.approx(float(predicted), rel=0.03)


def test_lemma_1_is_a_lower_bound_on_the_first_fall() -> None:
    """(69) has 2/5 where half of the filters are active, and no noise."""
    common = (100, 0.8)
    rate = theory.stage_1_rate_order(*common, 500, 0.05, 30, 1 / 30)
    assert rate == pytest.approx(0.05 * 100 * 0.64 / (30 * 500))
    fall = theory.first_loss_drop(*common, 0.0, 500, 5, 0.05, 30, 1 / 30)
    assert fall / (1 - 1 / 5) == pytest.approx(rate / 2)
    assert theory.STAGE_1_CONSTANT * rate < fall / (1 - 1 / 5)
    # without the 1/m the logits gain m^2 times as much: each weight m times, each seen m times more
    assert theory.stage_1_rate_order(*common, 500, 0.05, 30, 1.0) == pytest.approx(900 * rate)


def test_the_target_of_lemma_2() -> None:
    for output_scale in (1 / 50, 1.0):
        length = theory.target_length(5, 0.1, 2.0, 50, output_scale)
        # 0.4 m active filters give the logit log(4 (K - 1)/eps)
        logit = output_scale * 0.4 * 50 * length * 2.0
        assert logit == pytest.approx(math.log(4 * 4 / 0.1))


def test_balance() -> None:
    assert theory.balance_order([1.0, 4.0], [1.0, 1.5]) == 4.0
    assert theory.balance_order([1.0, 1.0], [1.0, 3.0]) == 9.0
    assert theory.balance_order([2.0, 2.0], [1.0, 1.0]) == 1.0


# ------------------------------------------------------------------------------- neurons and memory


def test_floors() -> None:
    assert theory.rank_floor(100) == 90 and theory.active_floor(100) == 10
    assert theory.rank_in_proof(100, 1000, 999, 5) == 95
    assert theory.rank_in_proof(100, 1000, 50, 5) == 45
    assert theory.smallest_singular_floor(400, 0.01) == pytest.approx(0.02)


def test_responses() -> None:
    stored = np.array([5.0, 2.0])
    gram = np.array([[16.0, 1.0], [1.0, 9.0]])
    found = theory.tail_response_order(gram, stored, 2.0, 10, 0.1, 50, 1 / 50)
    np.testing.assert_allclose(found, 0.1 / 10 * 2 * np.array([[4 * 5, 2], [5, 3 * 2]]))
    # as printed: without the output scale, m times as much
    printed = theory.tail_response_order(gram, stored, 2.0, 10, 0.1, 50, 1.0)
    np.testing.assert_allclose(printed, 50 * found)


@given(seeds, st.floats(0.5, 4.0))
def test_responses_give_the_noise_correlation_ratio(seed: int, residual: float) -> None:
    """With balanced residuals b(S) is sqrt(|S|) times one number, and Lemma 6 squared is Gamma."""
    gram, sizes, _ = drawn(seed)
    stored = residual * np.sqrt(sizes)
    seen = theory.tail_response_order(gram, stored, 1.0, 100, 0.1, 10, 0.1)
    ratio = (np.diagonal(seen)[:, None] / seen) ** 2
    np.testing.assert_allclose(ratio, theory.noise_correlation_ratio(gram, sizes))


# -------------------------------------------------------------------------------- homogeneous noise


@given(st.integers(2, 20), st.integers(1, 100), st.integers(30, 5000), st.floats(0.1, 3.0))
def test_homogeneous_noise_is_the_classical_case(
    classes: int, size: int, d: int, sigma: float
) -> None:
    gram = np.full((classes, classes), sigma**4 * (d - classes))  # Remark 5, footnote 2
    sizes = np.full(classes, size)
    np.testing.assert_allclose(theory.noise_correlation_ratio(gram, sizes), 1.0)
    norm = 0.7
    ratio = theory.classical_ratio(classes, classes * size, d, norm, sigma)
    signal = theory.signal_ratio(gram, sizes, np.full(classes, norm))
    np.testing.assert_allclose(signal, float(ratio))
    back = theory.classical_norm(classes, classes * size, d, ratio, sigma)
    assert back == pytest.approx(norm)


def test_exponents_of_the_classical_ratio() -> None:
    def slope(of: Callable[[float], Any], at: float) -> float:
        return math.log2(float(of(2 * at)) / float(of(at)))

    assert slope(lambda n: theory.classical_ratio(2, n, 100, 1.0), 50) == pytest.approx(1)
    assert slope(lambda u: theory.classical_ratio(2, 50, 100, u), 1.0) == pytest.approx(4)
    assert slope(lambda d: theory.classical_ratio(2, 50, d, 1.0), 1e6) == pytest.approx(
        -1, abs=1e-5
    )
    assert slope(lambda s: theory.classical_ratio(2, 50, 99, 1.0, s), 1.0) == pytest.approx(-4)


# --------------------------------------------------------------------------------------- bad values


SQUARE = np.ones((2, 2))
BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: theory.noise_correlation_ratio(np.ones(3), [1]), r"gram=\(3,\): must have shape"),
    (lambda: theory.noise_correlation_ratio(np.ones((2, 3)), [1]), r"gram=\(2, 3\): must have"),
    (lambda: theory.noise_correlation_ratio(np.ones((1, 1)), [1]), r"gram=\(1, 1\): must have"),
    (lambda: theory.noise_correlation_ratio([[1, 2], [3, 1]], [1, 1]), "gram=.*symmetric"),
    (lambda: theory.noise_correlation_ratio([[1, -1], [-1, 1]], [1, 1]), "gram=.*at least 0"),
    (lambda: theory.noise_correlation_ratio(SQUARE, [1, 0]), "sizes=.*more than 0, one per class"),
    (lambda: theory.noise_correlation_ratio(SQUARE, [1, 1, 1]), "sizes=.*one per class"),
    (lambda: theory.signal_ratio(SQUARE, [1, 1], [-1, 1]), "norms=.*must be at least 0"),
    (lambda: theory.regime(SQUARE, [1, 1], [1, 1], harmful=2.0), "harmful=2.0: C_3 must be"),
    (lambda: theory.regime(SQUARE, [1, 1], [1, 1], harmful=0.0), "harmful=0.0: C_3 must be"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_a_value_that_makes_no_sense_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()
