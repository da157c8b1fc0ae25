"""InfoNCE against torch's cross-entropy; its stop-gradient; its factor."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.train.losses import info_nce, info_nce_gradient

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
