"""The few matrix products behind the score, each symmetric product done once.

On a CPU they are BLAS's symmetric and triangular routines (``blas.py``); a GPU multiplies in full.

**Why the score is all float64.** In float32, with unit roundoff u = 2^-24 and sums of d terms,
rounding may change q = x^T S x by gamma_2d |x|^T |S| |x| <= 2 d u r |S|_F, where r = |x|^2. The
score has 2 q / D^2, so in parts of |Cov|_F^2 = |S|_F^2 / D^2 it moves by up to 4 d u r / |S|_F. The
largest r of a class is several times tr(S) / n, and tr(S) / |S|_F lies between 1 and sqrt(d): to
keep 1e-9 for every sample of 512 features a class must have millions of them, and a class of the
Gram route, with n < 2 d, never does. Where the bound holds, float32 would save a third of the time
at most. So there is one precision, which TF32 does not touch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.measure.influence.blas import (
    add_to_upper,
    inverse_root_in_place,
    times_upper_in_place,
)


def uses_blas(rows: Tensor) -> bool:
    return rows.device.type == "cpu"


def add_scatter(scatter: Tensor, rows: Tensor) -> None:
    """``scatter += rows^T rows`` in place: (d, d) and (m, d), float64, contiguous. Only the upper
    triangle of the result counts."""
    if uses_blas(rows):
        add_to_upper(scatter.numpy(), rows.numpy())
    else:
        scatter.addmm_(rows.T, rows)


def times_upper(rows: Tensor, upper: Tensor) -> Tensor:
    """``rows @ triu(upper)``: (m, d) and (d, d), contiguous and of one type. What lies below the
    diagonal is not read; on a CPU ``rows`` itself becomes the result."""
    if not uses_blas(rows):
        return rows @ upper.triu()
    times_upper_in_place(rows.numpy(), upper.numpy())
    return rows


def quadratic_form(rows: Tensor, halved: Tensor) -> Tensor:
    """x^T S x for each row x: (m,). ``halved`` is S with its diagonal halved (``halve_diagonal``):
    the upper triangle of that is half of the form."""
    return times_upper(rows.clone(), halved).mul_(rows).sum(dim=1).mul_(2)


def halve_diagonal(scatter: Tensor) -> None:
    """In place, for ``quadratic_form``. Halving is exact, so that doubling undoes it."""
    scatter.diagonal().mul_(0.5)


def double_diagonal(scatter: Tensor) -> None:
    scatter.diagonal().mul_(2)


def square_norm(scatter: Tensor) -> float:
    """|S|_F^2 of a symmetric matrix of which the upper triangle is given, without a copy."""
    diagonal = float(scatter.diagonal().square().sum())
    both = 0.0
    for row in range(0, len(scatter), 256):  # a strip at a time
        strip = scatter[row : row + 256, row:].triu()
        both += float(strip.square_().sum())
    return 2 * both - diagonal


def symmetric(scatter: Tensor) -> Tensor:
    """The whole matrix, from its upper triangle: a copy."""
    upper = scatter.triu()
    return upper + upper.triu(1).T


def whitening(covariance: Tensor) -> Tensor:
    """An upper triangular W with W W^T = covariance^-1, so that |x W|^2 = x^T covariance^-1 x.

    covariance: (k, k), positive definite; on a CPU it becomes the result. Only the upper triangles
    of both count.
    """
    if uses_blas(covariance):
        inverse_root_in_place(covariance.numpy())
        return covariance
    lower = torch.linalg.cholesky(symmetric(covariance))
    unit = torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    return torch.linalg.solve_triangular(lower, unit, upper=False).T.contiguous()


def gram_squares(rows: Tensor, others: Tensor) -> Tensor:
    """(x_i . x_j)^2 for the rows of two tiles."""
    return (rows @ others.T).square_()
