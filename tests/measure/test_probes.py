"""Logistic probes against scikit-learn, and what symmetry forbids them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from small_contrastive import small
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.measure.probes import Probe, balanced_accuracy, fit_probe
from rarefy.measure.ranking import auroc

RUNS, SAMPLES, NEURONS = 3, 200, 6


def problem(overlap: float = 0.6) -> tuple[Tensor, Tensor]:
    """Embeddings of very different sizes, one silent neuron, and four labels of them; in the last
    label all training samples agree."""
    draws = Draws([key("probes", run) for run in range(RUNS)], dtype=torch.float64)
    z = draws.normal("z", (SAMPLES, 4))
    f = z @ draws.normal("mixing", (4, NEURONS)) + overlap * draws.normal("n", (SAMPLES, NEURONS))
    f = f * torch.logspace(-5, 2, NEURONS, dtype=torch.float64) + 1e-3
    f[:, :, 3] = 0.0
    return f, z > torch.tensor([0.0, 1.2, -0.5, 99.0])


def standardised(f: Tensor, probe: Probe, run: int) -> np.ndarray:
    scale = torch.where(probe.scale[run] > 0, probe.scale[run], 1.0)
    return ((f[run] - probe.centre[run]) / scale).numpy()


@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("overlap", [0.6, 0.0])
def test_the_probe_is_scikit_learns_balanced_logistic_regression(
    strength: float, overlap: float
) -> None:
    f, labels = problem(overlap)  # overlap 0: the classes can be separated
    probe = fit_probe(f, labels, strength)
    assert probe.trained.tolist() == [[True, True, True, False]] * RUNS
    for run in range(RUNS):
        x = standardised(f, probe, run)
        for label in range(3):
            reference = LogisticRegression(
                C=strength, class_weight="balanced", tol=1e-10, max_iter=5000
            ).fit(x, labels[run, :, label].numpy())
            close = {"rtol": 1e-4, "atol": 1e-4}
            found = probe.coefficients[run, label].numpy()
            np.testing.assert_allclose(found, reference.coef_[0], **close)
            np.testing.assert_allclose(probe.intercept[run, label], reference.intercept_, **close)
    assert (probe.coefficients[:, :, 3] == 0).all()  # silent


def test_quality_is_that_of_scikit_learn_on_samples_the_probe_has_not_seen() -> None:
    f, labels = problem()
    train, test = slice(0, 120), slice(120, SAMPLES)
    scores = fit_probe(f[:, train], labels[:, train]).scores(f[:, test])
    right, area = balanced_accuracy(scores, labels[:, test]), auroc(scores, labels[:, test].mT)
    for run in range(RUNS):
        for label in range(3):
            truth, score = labels[run, test, label].numpy(), scores[run, label].numpy()
            expected = balanced_accuracy_score(truth, score > 0)
            assert float(right[run, label]) == pytest.approx(expected, abs=1e-12)
            assert float(area[run, label]) == pytest.approx(roc_auc_score(truth, score), abs=1e-12)


def test_a_probe_is_the_same_alone_and_in_a_batch() -> None:
    f, labels = problem()
    together, alone = fit_probe(f, labels), fit_probe(f[1:2], labels[1:2])
    torch.testing.assert_close(
        alone.coefficients, together.coefficients[1:2], rtol=1e-10, atol=1e-10
    )
    part = fit_probe(f, labels[:, :, 1:2])
    torch.testing.assert_close(
        part.coefficients, together.coefficients[:, 1:2], rtol=1e-10, atol=1e-10
    )


def test_every_probe_arrives_even_where_newtons_first_steps_lead_astray() -> None:
    """Nearly unregularised, with outliers of twelve orders of magnitude: a step that is taken
    though it raises the loss, or 40 steps, do not do."""
    draws = Draws([key("hard", run) for run in range(2)], dtype=torch.float64)
    f = draws.normal("f", (300, 200))
    labels = draws.normal("y", (300, 1)) > 0
    probe = fit_probe(f.sign() * f.abs() ** 12, labels, strength=1e6)
    assert probe.trained.all() and torch.isfinite(probe.coefficients).all()


def test_the_size_of_a_neuron_does_not_matter() -> None:
    f, labels = problem()
    sizes = torch.logspace(4, -3, NEURONS, dtype=torch.float64)
    expected, found = (fit_probe(g, labels).scores(g)[:, :3] for g in (f, f * sizes))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_a_label_with_one_class_has_no_probe_and_no_quality() -> None:
    f, labels = problem()
    scores = fit_probe(f, labels).scores(f)
    assert torch.isnan(scores[:, 3]).all() and torch.isfinite(scores[:, :3]).all()
    for quality in (balanced_accuracy(scores, labels), auroc(scores, labels.mT)):
        assert torch.isnan(quality[:, 3]).all() and torch.isfinite(quality[:, :3]).all()


def test_a_network_of_silent_neurons_is_at_chance() -> None:
    _, labels = problem()
    f = torch.zeros(RUNS, SAMPLES, NEURONS)
    scores = fit_probe(f, labels[:, :, :3]).scores(f)
    half = torch.full((RUNS, 3), 0.5, dtype=torch.float64)
    torch.testing.assert_close(auroc(scores, labels[:, :, :3].mT), half)  # all tie
    torch.testing.assert_close(balanced_accuracy(scores, labels[:, :, :3]), half)


def test_a_score_of_zero_is_half_right() -> None:
    scores = torch.tensor([[[0.0, 1.0, -1.0, 0.0]]])
    labels = torch.tensor([True, True, False, False])[None, :, None]
    assert balanced_accuracy(scores, labels).tolist() == [[0.75]]


def test_samples_of_one_embedding_tie_whatever_their_place() -> None:
    """Or the AUROC of a network that is often silent would depend on rounding."""
    f, labels = problem()
    f[:, ::2] = f[:, :1]
    scores = fit_probe(f, labels[:, :, :3]).scores(f)
    assert (scores[:, :, ::2] == scores[:, :, :1]).all()


@pytest.mark.parametrize("strength", [0.0, -1.0, float("inf"), float("nan")])
def test_a_strength_that_makes_no_sense_is_refused(strength: float) -> None:
    with pytest.raises(UsageError, match=f"strength={strength}: must be positive and finite"):
        fit_probe(*problem(), strength)


def test_labels_of_other_samples_are_refused() -> None:
    f, labels = problem()
    message = r"labels=\(3, 199, 4\): must be \(run, sample, label\) with \(3, 200\) in front"
    with pytest.raises(UsageError, match=message):
        fit_probe(f, labels[:, 1:])


# -------------------------------------------------------------------------- what symmetry forbids


@pytest.mark.parametrize("bias", [0.0, 0.4])
def test_presence_cannot_be_read_linearly_off_an_odd_network_but_sign_and_size_can(
    bias: float,
) -> None:
    """f(-X) = -f(X), and X and -X are equally likely: a linear score of f is symmetric in each
    class, so that presence has AUROC 1/2 in the population. Here samples come in such pairs."""
    setting = small(runs=4, d1=12, neurons=12, sigma=0.05, bias=bias, spread="all", sigma_0=0.6)
    pairs = setting.data.sample(setting.draws, 400, 0)

    def embedded(view: int) -> tuple[Tensor, Tensor]:
        tokens, z = pairs.tokens[:, view], pairs.latents[:, view].sum(dim=2)
        f = setting.problem.embed(setting.parameters, tokens)
        mirrored = setting.problem.embed(setting.parameters, -tokens)
        torch.testing.assert_close(mirrored, -f)
        return torch.cat([f, mirrored], dim=1), torch.cat([z, -z], dim=1)

    (f, z), (fresh, truth) = embedded(0), embedded(1)

    def quality(f: Tensor, fresh: Tensor, label: Tensor, actual: Tensor) -> Tensor:
        return auroc(fit_probe(f, label).scores(fresh), actual.mT)

    literal = quality(f, fresh, z != 0, truth != 0)
    torch.testing.assert_close(literal, torch.full_like(literal, 0.5), rtol=0, atol=1e-6)
    assert (quality(f, fresh, z > 0, truth > 0) > 0.9).all()
    assert (quality(f.abs(), fresh.abs(), z != 0, truth != 0) > 0.6).all()
