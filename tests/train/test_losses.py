"""InfoNCE against torch's cross-entropy; its stop-gradient; its factor."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.train.losses import info_nce, info_nce_gradient, softmax_weights

EXACT = 1e-12


def embeddings(runs: int = 3, samples: int = 6, m: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    f_x, f_y = torch.randn(2, runs, samples, m, generator=generator, dtype=torch.float64)
    return f_x, f_y


TAU = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
ONE = torch.ones(3, dtype=torch.float64)


@settings(deadline=None, max_examples=15)
@given(samples=st.integers(1, 9), m=st.integers(1, 5), seed=st.integers(0, 1000))
def test_the_loss_is_cross_entropy_with_the_partner_as_the_label(
    samples: int, m: int, seed: int
) -> None:
    f_x, f_y = embeddings(samples=samples, m=m, seed=seed)
    found = info_nce(f_x, f_y, TAU, ONE)
    for run in range(3):
        logits = f_x[run] @ f_y[run].T / TAU[run]
        expected = torch.nn.functional.cross_entropy(logits, torch.arange(samples))
        torch.testing.assert_close(found[run], expected, rtol=EXACT, atol=EXACT)


def test_both_ways_to_the_loss_agree() -> None:
    f_x, f_y = embeddings()
    factor = torch.tensor([1.0, 0.5, 3.0], dtype=torch.float64)
    loss, _ = info_nce_gradient(f_x, f_y, TAU, factor)
    torch.testing.assert_close(loss, info_nce(f_x, f_y, TAU, factor), rtol=EXACT, atol=EXACT)


def test_flat_logits_cost_the_logarithm_of_the_batch() -> None:
    nothing = torch.zeros(3, 8, 4, dtype=torch.float64)
    assert info_nce(nothing, nothing, TAU, ONE).tolist() == pytest.approx([math.log(8)] * 3)


def test_no_gradient_reaches_the_second_argument() -> None:
    f_x, f_y = (f.requires_grad_() for f in embeddings())
    to_x, to_y = torch.autograd.grad(
        info_nce(f_x, f_y, TAU, ONE).sum(), (f_x, f_y), allow_unused=True
    )
    assert to_y is None and to_x.abs().min() > 0


def test_one_tensor_in_both_places_is_differentiated_in_the_first_only() -> None:
    f, _ = embeddings()
    shared = f.clone().requires_grad_()
    (found,) = torch.autograd.grad(info_nce(shared, shared, TAU, ONE).sum(), shared)
    first = f.clone().requires_grad_()
    (expected,) = torch.autograd.grad(info_nce(first, f, TAU, ONE).sum(), first)
    torch.testing.assert_close(found, expected, rtol=EXACT, atol=EXACT)


def test_the_gradient_by_hand_is_autograds() -> None:
    f_x, f_y = embeddings()
    factor = torch.tensor([1.0, 0.5, 3.0], dtype=torch.float64)
    leaf = f_x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(info_nce(leaf, f_y, TAU, factor).sum(), leaf)
    _, found = info_nce_gradient(f_x, f_y, TAU, factor)
    torch.testing.assert_close(found, expected, rtol=EXACT, atol=EXACT)


def test_the_loss_times_tau_has_the_gradient_times_tau() -> None:
    f_x, f_y = embeddings()
    plain_loss, plain = info_nce_gradient(f_x, f_y, TAU, ONE)
    times_loss, times = info_nce_gradient(f_x, f_y, TAU, TAU)
    torch.testing.assert_close(times_loss, TAU * plain_loss, rtol=EXACT, atol=0)
    torch.testing.assert_close(times, TAU[:, None, None] * plain, rtol=EXACT, atol=EXACT)


def test_large_similarities_do_not_overflow() -> None:
    f_x, f_y = embeddings()
    for scale in (1e3, 1e150):
        loss, gradient = info_nce_gradient(scale * f_x, f_y, TAU, ONE)
        assert torch.isfinite(loss).all() and torch.isfinite(gradient).all()


# --------------------------------------------------------------------------------- neurons left out

FACTOR = torch.tensor([1.0, 0.5, 3.0], dtype=torch.float64)
KEPT = torch.tensor(
    [[True, False, True, False], [True, True, True, True], [False, False, False, True]]
)


def test_with_neurons_left_out_the_value_is_the_masked_networks() -> None:
    f_x, f_y = embeddings()
    expected = info_nce(f_x * KEPT[:, None], f_y * KEPT[:, None], TAU, FACTOR)
    found = info_nce(f_x, f_y, TAU, FACTOR, KEPT)
    by_hand, _ = info_nce_gradient(f_x, f_y, TAU, FACTOR, KEPT)
    torch.testing.assert_close(found, expected, rtol=EXACT, atol=EXACT)
    torch.testing.assert_close(by_hand, expected, rtol=EXACT, atol=EXACT)
    whole = info_nce(f_x, f_y, TAU, FACTOR)
    assert (found - whole).abs()[[0, 2]].min() > 1e-2  # run 1 keeps all its neurons


def test_with_neurons_left_out_autograd_gives_the_gradient_by_hand() -> None:
    f_x, f_y = embeddings()
    leaf, partner = f_x.clone().requires_grad_(), f_y.clone().requires_grad_()
    loss = info_nce(leaf, partner, TAU, FACTOR, KEPT)
    found, to_y = torch.autograd.grad(loss.sum(), (leaf, partner), allow_unused=True)
    _, expected = info_nce_gradient(f_x, f_y, TAU, FACTOR, KEPT)
    torch.testing.assert_close(found, expected, rtol=EXACT, atol=EXACT)
    assert to_y is None


def test_with_neurons_left_out_the_gradient_is_formula_5_in_loops() -> None:
    f_x, f_y = embeddings()
    _, found = info_nce_gradient(f_x, f_y, TAU, TAU, KEPT)  # times tau: (5) has no 1/tau
    runs, samples, m = f_x.shape
    for run in range(runs):
        kept = [i for i in range(m) if KEPT[run, i]]
        for k in range(samples):
            exponential = [
                math.exp(
                    sum(float(f_x[run, k, i] * f_y[run, s, i]) for i in kept) / float(TAU[run])
                )
                for s in range(samples)
            ]
            logit = [value / sum(exponential) for value in exponential]
            for i in range(m):  # all of them
                expected = (logit[k] - 1) * float(f_y[run, k, i]) + sum(
                    logit[s] * float(f_y[run, s, i]) for s in range(samples) if s != k
                )
                assert float(found[run, k, i]) == pytest.approx(
                    expected / samples, rel=1e-10, abs=EXACT
                )


def test_formula_5_is_the_slope_of_the_loss_for_kept_neurons_and_for_no_other() -> None:
    """The loss does not feel a neuron that is left out: its slope is 0, and (5) is not."""
    f_x, f_y = embeddings()
    _, gradient = info_nce_gradient(f_x, f_y, TAU, FACTOR, KEPT)
    slope, step = torch.zeros_like(f_x), 1e-6
    for sample in range(f_x.shape[1]):
        for i in range(f_x.shape[2]):
            nudge = torch.zeros_like(f_x)
            nudge[:, sample, i] = step
            up, down = (info_nce(f_x + s * nudge, f_y, TAU, FACTOR, KEPT) for s in (1, -1))
            slope[:, sample, i] = (up - down) / (2 * step)
    kept = KEPT[:, None].expand_as(f_x)
    torch.testing.assert_close(slope[kept], gradient[kept], rtol=1e-6, atol=1e-8)
    assert not slope[~kept].any() and gradient[~kept].abs().min() > 1e-4


@pytest.mark.parametrize("automatic", [False, True])
def test_a_mask_that_keeps_all_changes_nothing(automatic: bool) -> None:
    f_x, f_y = embeddings()
    everything = torch.ones_like(KEPT)

    def both(kept: Tensor | None) -> tuple[Tensor, Tensor]:
        if not automatic:
            return info_nce_gradient(f_x, f_y, TAU, FACTOR, kept)
        leaf = f_x.clone().requires_grad_()
        loss = info_nce(leaf, f_y, TAU, FACTOR, kept)
        return loss.detach(), torch.autograd.grad(loss.sum(), leaf)[0]

    for found, expected in zip(both(everything), both(None), strict=True):
        torch.testing.assert_close(found, expected, rtol=EXACT, atol=EXACT)


def test_the_softmax_weights_of_an_anchor_sum_to_one_with_and_without_a_mask() -> None:
    f_x, f_y = embeddings()
    for kept in (None, KEPT):
        weights, _ = softmax_weights(f_x, f_y, TAU, kept)
        assert (weights > 0).all()
        torch.testing.assert_close(weights.sum(dim=2), torch.ones(3, 6, dtype=torch.float64))


def test_large_similarities_do_not_overflow_with_a_mask() -> None:
    f_x, f_y = embeddings()
    for scale in (1e3, 1e150):
        leaf = (scale * f_x).requires_grad_()
        loss = info_nce(leaf, f_y, TAU, ONE, KEPT)
        (gradient,) = torch.autograd.grad(loss.sum(), leaf)
        assert torch.isfinite(loss).all() and torch.isfinite(gradient).all()
