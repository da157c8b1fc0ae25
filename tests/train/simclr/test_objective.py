"""Contrastive losses against their definitions, written as loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.train.simclr.objective import contrast, nt_xent, one_sided

TIGHT = 1e-10
"""float64: nothing but rounding."""


def points(count: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    both = torch.randn(2, count, width, generator=random, dtype=torch.float64)
    a, b = torch.nn.functional.normalize(both, dim=2)
    return a.requires_grad_(), b.requires_grad_()


def nt_xent_by_hand(a: Tensor, b: Tensor, tau: float) -> Tensor:
    z = [*a, *b]
    count = len(a)
    total = torch.zeros((), dtype=torch.float64)
    for i in range(2 * count):
        j = (i + count) % (2 * count)
        others = [torch.exp(z[i] @ z[k] / tau) for k in range(2 * count) if k != i]
        total = total - torch.log(torch.exp(z[i] @ z[j] / tau) / sum(others))
    return total / (2 * count)


def one_sided_by_hand(a: Tensor, b: Tensor, tau: float) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    fixed = b.detach()
    for i in range(len(a)):
        among = sum(torch.exp(a[i] @ fixed[k] / tau) for k in range(len(a)))
        total = total - torch.log(torch.exp(a[i] @ fixed[i] / tau) / among)
    return total / len(a)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 6), st.integers(2, 5), st.integers(0, 10**6), st.floats(0.1, 2.0))
def test_values_and_gradients_are_those_of_the_definitions(count, width, seed, tau):
    a, b = points(count, width, seed)
    for mine, plain in ((nt_xent, nt_xent_by_hand), (one_sided, one_sided_by_hand)):
        found = mine(a, b, torch.tensor(tau, dtype=torch.float64))
        wanted = plain(a, b, tau)
        assert found.item() == pytest.approx(wanted.item(), abs=TIGHT)
        first = torch.autograd.grad(found, (a, b), allow_unused=True)
        second = torch.autograd.grad(wanted, (a, b), allow_unused=True)
        for x, y in zip(first, second, strict=True):
            assert (x is None) == (y is None)
            assert x is None or torch.allclose(x, y, atol=TIGHT)


def test_the_second_views_of_the_one_sided_loss_get_no_gradient() -> None:
    a, b = points(4, 3, 0)
    loss = one_sided(a, b, torch.tensor(0.5, dtype=torch.float64))
    loss.backward()
    assert b.grad is None and a.grad is not None and bool(a.grad.any())


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_the_symmetric_loss_does_not_know_which_view_came_first(seed: int) -> None:
    a, b = points(5, 4, seed)
    tau = torch.tensor(0.2, dtype=torch.float64)
    assert nt_xent(a, b, tau).item() == pytest.approx(nt_xent(b, a, tau).item(), abs=TIGHT)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    shuffled = nt_xent(a[order], b[order], tau)
    assert shuffled.item() == pytest.approx(nt_xent(a, b, tau).item(), abs=TIGHT)


def test_points_of_equal_views_have_the_known_loss() -> None:
    """n orthogonal images, both views equal: log(1 + (2n - 2) exp(-1 / tau))."""
    a = torch.eye(4, dtype=torch.float64)
    tau = 0.5
    found = contrast(3 * a, 7 * a, torch.tensor(tau), "nt-xent")  # (length does not matter)
    assert found.loss.item() == pytest.approx(math.log(1 + 6 * math.exp(-1 / tau)), abs=1e-6)
    assert found.alignment.item() == pytest.approx(0, abs=1e-6)
    # |a - b|^2 = 2 for all pairs of different images
    assert found.uniformity.item() == pytest.approx(-4, abs=1e-5)
    assert not found.alignment.requires_grad and not found.uniformity.requires_grad


def test_the_measures_see_views_that_are_apart() -> None:
    a = torch.eye(2)
    found = contrast(a, a.flip(0), torch.tensor(0.2), "one-sided")
    assert found.alignment.item() == pytest.approx(2, abs=1e-6)
    assert found.loss.item() == pytest.approx(math.log(1 + math.exp(1 / 0.2)), rel=1e-5)


def test_half_precision_points_are_compared_in_single_precision() -> None:
    a, b = (one.detach().to(torch.bfloat16) for one in points(8, 16, 1))
    found = contrast(a, b, torch.tensor(0.2))
    assert found.loss.dtype == torch.float32
