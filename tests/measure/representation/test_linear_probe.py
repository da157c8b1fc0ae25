"""The probe against scikit-learn and autograd, and what it does with missing and rare classes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import cross_entropy

from rarefy.core.errors import UsageError
from rarefy.measure.representation import probe_problem
from rarefy.measure.representation.labelled import accuracy_by_class
from rarefy.measure.representation.linear_probe import (
    LinearProbe,
    fit_chosen,
    fit_linear,
    strength_path,
)

CLASSES, WIDTH = 4, 8


def problem(samples: int = 240, seed: int = 0, apart: float = 1.0) -> tuple[Tensor, Tensor]:
    """Overlapping classes of unequal size, features of very different sizes, one constant."""
    generator = torch.Generator().manual_seed(seed)
    share = torch.tensor([0.5, 0.3, 0.15, 0.05])
    labels = torch.multinomial(share, samples, True, generator=generator)
    means = apart * torch.randn(
        CLASSES, WIDTH, generator=torch.Generator().manual_seed(99), dtype=torch.float64
    )
    rows = means[labels] + torch.randn(samples, WIDTH, generator=generator, dtype=torch.float64)
    mixing = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(98))
    rows = rows @ mixing.double() * torch.logspace(-4, 3, WIDTH, dtype=torch.float64) + 7.0
    rows[:, 3] = 0.1
    return rows, labels


def standardised(features: Tensor, probe: LinearProbe) -> Tensor:
    return (features - probe.centre) / torch.where(probe.scale > 0, probe.scale, 1.0)


@pytest.mark.parametrize("strength", [1.0, 1e-2, 1e-4])
def test_it_is_scikit_learns_logistic_regression(strength):
    features, labels = problem()
    probe = fit_linear(features, labels, CLASSES, strength, tolerance=1e-8)
    assert probe.converged and probe.error <= 1e-8
    reference = LogisticRegression(C=1 / (strength * len(labels)), tol=1e-12, max_iter=20_000)
    reference.fit(standardised(features, probe).numpy(), labels.numpy())
    # 1e-5: where scipy's search stops, its last digits lost to the sum of losses
    np.testing.assert_allclose(probe.coefficients, reference.coef_, rtol=1e-5, atol=1e-5)
    ours = probe.intercept - probe.intercept.mean()
    theirs = reference.intercept_ - reference.intercept_.mean()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    assert (probe.coefficients[:, 3] == 0).all()  # constant
    predicted = reference.predict(standardised(features, probe).numpy())
    assert (probe.predict(features).numpy() == predicted).mean() == 1


def test_two_classes_are_the_usual_regression_at_half_the_strength():
    # two vectors w/2 and -w/2 have half the square of w
    features, labels = problem()
    labels = (labels > 0).long()
    probe = fit_linear(features, labels, 2, 0.02, tolerance=1e-8)
    reference = LogisticRegression(C=1 / (0.01 * len(labels)), tol=1e-12, max_iter=20_000)
    reference.fit(standardised(features, probe).numpy(), labels.numpy())
    difference = probe.coefficients[1] - probe.coefficients[0]
    np.testing.assert_allclose(difference, reference.coef_[0], rtol=1e-5, atol=1e-5)


def test_autograd_agrees_that_it_is_a_minimum_and_the_error_is_a_bound():
    features, labels = problem()
    best = fit_linear(features, labels, CLASSES, 1e-3, tolerance=1e-10)
    x = standardised(features, best)
    weights = best.coefficients.clone().requires_grad_()
    free = best.intercept.clone().requires_grad_()
    loss = cross_entropy(x @ weights.T + free, labels) + 1e-3 / 2 * weights.square().sum()
    for gradient in torch.autograd.grad(loss, (weights, free)):
        assert float(gradient.abs().max()) < 1e-11
    for most_steps in (1, 5, 20):
        rough = fit_linear(features, labels, CLASSES, 1e-3, most_steps=most_steps, tolerance=1e-10)
        away = (rough.coefficients - best.coefficients).norm()
        assert not rough.converged and rough.steps == most_steps
        assert away <= 1.01 * rough.error * rough.coefficients.norm().clamp(min=1)


def test_a_start_saves_steps_and_changes_nothing_else():
    features, labels = problem()
    cold = fit_linear(features, labels, CLASSES, 1e-3, tolerance=1e-8)
    near = fit_linear(features[::2], labels[::2], CLASSES, 2e-3)  # of other rows
    warm = fit_linear(features, labels, CLASSES, 1e-3, near, tolerance=1e-8)
    torch.testing.assert_close(warm.coefficients, cold.coefficients, rtol=1e-6, atol=1e-6)
    assert fit_linear(features, labels, CLASSES, 1e-3, cold, tolerance=1e-7).steps == 0
    close = fit_linear(features, labels, CLASSES, 1.05e-3, tolerance=1e-8)
    warm, cold = (fit_linear(features, labels, CLASSES, 1e-3, start) for start in (close, None))
    assert warm.steps < cold.steps


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1.0, 1e-3]))
def test_units_of_the_features_and_order_of_the_rows_do_not_matter(seed, strength):
    features, labels = problem(60, seed)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(60, generator=generator)
    factor = 10 ** (4 * torch.rand(WIDTH, generator=generator, dtype=torch.float64) - 2)
    here = fit_linear(features, labels, CLASSES, strength, tolerance=1e-9)
    moved = (features * factor - 3)[order]
    there = fit_linear(moved, labels[order], CLASSES, strength, tolerance=1e-9)
    torch.testing.assert_close(
        here.scores(features)[order], there.scores(moved), rtol=1e-6, atol=1e-6
    )


def test_float32_gives_the_same_probe_also_in_many_parts(monkeypatch):
    features, labels = problem()
    exact = fit_linear(features, labels, CLASSES, 1e-3, tolerance=1e-8)
    rough = fit_linear(features.float(), labels.to(torch.uint8), CLASSES, 1e-3)
    assert rough.converged
    # the tolerance is a thousandth of the norm
    away = (rough.coefficients - exact.coefficients).norm() / exact.coefficients.norm()
    assert away < 2e-3
    monkeypatch.setitem(probe_problem._VALUES, "cpu", 100)
    parts = fit_linear(features, labels, CLASSES, 1e-3, tolerance=1e-8)
    torch.testing.assert_close(parts.coefficients, exact.coefficients, rtol=1e-6, atol=1e-6)


@pytest.mark.quick("1e-09")
@pytest.mark.parametrize("strength", [1e-6, 1e-9])
def test_float64_takes_over_where_almost_nothing_is_left_of_the_loss(strength):
    features, labels = problem(200, apart=6.0)
    probe = fit_linear(features.float(), labels, CLASSES, strength)
    exact = fit_linear(features, labels, CLASSES, strength)
    assert probe.converged and exact.converged
    away = (probe.coefficients - exact.coefficients).norm() / exact.coefficients.norm()
    assert away < 2e-3
    # nothing drifts that has no effect
    for each in (probe, exact):
        assert each.coefficients.sum(dim=0).abs().max() < 1e-9 * each.coefficients.norm()
        assert each.intercept.sum().abs() < 1e-9 * each.intercept.norm()


def test_a_tolerance_below_rounding_is_given_up_and_said():
    features, labels = problem()
    probe = fit_linear(features, labels, CLASSES, 1e-3, tolerance=1e-17)
    assert not probe.converged and probe.steps < 1000 and probe.error < 1e-8


def test_more_features_than_samples():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(12, 50, generator=generator)
    features[:, 25:] = features[:, :25]
    labels = torch.arange(12) % 3
    probe = fit_linear(features, labels, 3, 1e-4)
    assert probe.converged and (probe.predict(features) == labels).all()
    # copies share their weight: the ridge knows no other answer
    torch.testing.assert_close(
        probe.coefficients[:, :25], probe.coefficients[:, 25:], rtol=1e-5, atol=1e-6
    )


def test_a_class_that_was_not_trained_on_is_never_predicted():
    features, labels = problem()
    known = labels != 1
    probe = fit_linear(features[known], labels[known], 6, 1e-3)
    assert probe.converged
    assert set(probe.predict(features).tolist()) <= {0, 2, 3}
    assert probe.intercept[[1, 4, 5]].tolist() == [-torch.inf] * 3
    assert (probe.scores(features)[:, [0, 2, 3]]).isfinite().all()
    # and it does not disturb the others
    renamed = torch.tensor([0, -1, 1, 2])[labels[known]]
    alone = fit_linear(features[known], renamed, 3, 1e-3)
    torch.testing.assert_close(probe.coefficients[[0, 2, 3]], alone.coefficients)
    # nor as a start, when the class is there at last
    warm = fit_linear(features, labels, 6, 1e-2, probe, tolerance=1e-8)
    cold = fit_linear(features, labels, 6, 1e-2, tolerance=1e-8)
    torch.testing.assert_close(warm.coefficients, cold.coefficients, rtol=1e-6, atol=1e-6)


def test_one_class_one_sample_and_features_that_say_nothing():
    features, labels = problem(50)
    only = fit_linear(features, torch.full_like(labels, 2), CLASSES, 1e-3)
    assert only.converged and set(only.predict(features).tolist()) == {2}
    single = fit_linear(features[:1], labels[:1], CLASSES, 1e-3)
    assert single.converged and set(single.predict(features).tolist()) == {int(labels[0])}
    constant = fit_linear(torch.full_like(features, 0.1), labels, CLASSES, 1e-3)
    assert constant.converged
    shares = torch.softmax(constant.scores(features[:1]), dim=1)[0]
    expected = torch.bincount(labels, minlength=CLASSES) / 50
    torch.testing.assert_close(shares, expected.double(), rtol=1e-3, atol=1e-3)
    assert constant.scores(features[:0]).shape == (0, CLASSES)


def test_the_strength_is_the_best_on_validation_samples_and_of_equals_the_strongest():
    train, validation = problem(80, 1), problem(400, 2)
    strengths = (1e-6, 10.0, 1e-3, 0.1)
    (best, table), _ = strength_path(train, validation, CLASSES, strengths)
    assert [row.strength for row in table] == [10.0, 0.1, 1e-3, 1e-6]
    for row in table:
        probe = fit_linear(*train, CLASSES, row.strength, tolerance=1e-6)
        right = probe.predict(validation[0]) == validation[1]
        by_class = [float(right[validation[1] == c].double().mean()) for c in range(CLASSES)]
        # warm or cold, a sample of 400 on the border may change sides; the smallest class has 20
        assert row.balanced_accuracy == pytest.approx(np.mean(by_class), abs=0.02)
        assert row.accuracy == pytest.approx(float(right.double().mean()), abs=0.006)
        assert row.converged
    highest = max(row.balanced_accuracy for row in table)
    assert best == max(row.strength for row in table if row.balanced_accuracy == highest)
    # a single class is always right, whatever the strength
    one = train[0], torch.zeros_like(train[1])
    assert strength_path(one, one, CLASSES, strengths)[0].best == 10.0


def test_a_validation_class_that_was_not_trained_on_counts_zero():
    features, labels = problem(300, apart=6.0)
    known = labels != 2
    choice, _ = strength_path((features[known], labels[known]), (features, labels), CLASSES)
    assert choice.table[3].balanced_accuracy == pytest.approx(0.75, abs=0.02)
    # and a class without validation samples does not count
    choice, _ = strength_path((features, labels), (features[known], labels[known]), CLASSES)
    assert choice.table[3].balanced_accuracy == pytest.approx(1.0, abs=0.02)


def test_chosen_on_what_was_held_out_then_trained_on_all():
    features, labels = problem(300)
    held_out = torch.arange(300) % 5 == 0
    held_out[labels == 3] = True  # the rarest class is not in the part that chooses
    probe, choice, answered = fit_chosen(features, labels, CLASSES, held_out, tolerance=1e-7)
    train = features[~held_out], labels[~held_out]
    validation = features[held_out], labels[held_out]
    assert choice == strength_path(train, validation, CLASSES)[0]
    # by a probe that did not see them: its class was not in the part that chooses
    assert len(answered) == int(held_out.sum()) and not bool((answered == 3).any())
    told = max(row.balanced_accuracy for row in choice.table)
    by_class = accuracy_by_class(answered, validation[1], CLASSES)
    assert float(torch.nanmean(by_class)) == pytest.approx(told)
    cold = fit_linear(features, labels, CLASSES, choice.best, tolerance=1e-7)
    assert probe.strength == choice.best
    torch.testing.assert_close(probe.coefficients, cold.coefficients, rtol=1e-5, atol=1e-5)
    assert probe.intercept.isfinite().all()


def test_a_probe_that_did_not_arrive_says_so_in_the_table():
    features, labels = problem()
    held_out = torch.arange(len(labels)) % 4 == 0
    probe, choice, _ = fit_chosen(features, labels, CLASSES, held_out, (1e-5,), most_steps=2)
    assert not probe.converged and not choice.table[0].converged
    assert choice.table[0].steps == 2


def test_errors_name_what_is_wrong():
    features, labels = problem(50)
    bad = features.clone()
    bad[[3, 17], 2] = torch.nan
    bad[40, 0] = torch.inf
    with pytest.raises(UsageError, match=r"training features: 3 of 50 rows .* \(rows 3, 17, 40\)"):
        fit_linear(bad, labels, CLASSES, 1.0)
    with pytest.raises(UsageError, match=r"training features: 3 of 50 rows .* \(rows 3, 17, 40\)"):
        fit_chosen(bad, labels, CLASSES, labels == 0)
    with pytest.raises(UsageError, match=r"validation features: 50 of 50 rows .*4, \.\.\.\)"):
        strength_path((features, labels), (features * torch.nan, labels), CLASSES)
    probe = fit_linear(features, labels, CLASSES, 1.0)
    with pytest.raises(UsageError, match="features: 3 of 50 rows"):
        probe.predict(bad)
    with pytest.raises(UsageError, match=r"features=\(50, 7\): must have 8 columns"):
        probe.predict(features[:, :7])
    with pytest.raises(UsageError, match="validation features.*must have 8 columns"):
        strength_path((features, labels), (features[:, :7], labels), CLASSES)
    with pytest.raises(UsageError, match=r"start=\(4, 8\): must be \(5, 8\)"):
        fit_linear(features, labels, 5, 1.0, probe)
    for strength in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="strength=.*must be positive and finite"):
            fit_linear(features, labels, CLASSES, strength)
    with pytest.raises(UsageError, match=r"strengths=\(\): must hold at least one"):
        strength_path((features, labels), (features, labels), CLASSES, ())
    with pytest.raises(UsageError, match=r"held_out='torch.int64 \(50,\)': must be boolean"):
        fit_chosen(features, labels, CLASSES, labels)
    for held_out, amount in ((labels >= 0, 50), (labels < 0, 0)):
        with pytest.raises(UsageError, match=f"held_out={amount}: must mark some of 50 rows"):
            fit_chosen(features, labels, CLASSES, held_out)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, y: (f[0], y), r"training features=\(8,\): must have the shape"),
        (lambda f, y: (f[:, :0], y), r"training features=\(50, 0\): must have the shape"),
        (lambda f, y: (f[:0], y[:0]), r"training features=\(0, 8\): must have at least 1 rows"),
        (lambda f, y: (f + 0j, y), "training features='torch.complex128': must be real"),
        (lambda f, y: (f, y[:49]), r"training labels=\(49,\): must be one for each of 50 rows"),
        (lambda f, y: (f, y.double()), "training labels='torch.float64': must be whole numbers"),
        (lambda f, y: (f, y == 0), "training labels='torch.bool': must be whole numbers"),
        (lambda f, y: (f, y + 1), r"training labels=4: must be in 0\.\.3"),
        (lambda f, y: (f, y - 1), r"training labels=-1: must be in 0\.\.3"),
    ],
)
def test_errors_of_features_and_labels(change, message):
    features, labels = problem(50)
    assert set(labels.tolist()) == {0, 1, 2, 3}
    with pytest.raises(UsageError, match=message):
        fit_linear(*change(features, labels), CLASSES, 1.0)
    with pytest.raises(UsageError, match="classes=0: must be at least 1"):
        fit_linear(features, labels, 0, 1.0)
