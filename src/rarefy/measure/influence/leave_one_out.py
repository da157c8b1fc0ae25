"""What one sample does to the squared norm of its class covariance (003 Eq. (10)), in closed form.

For a class of n samples with x_i = z_i - mean, S = sum x x^T, r_i = |x_i|^2, q_i = x_i^T S x_i,
F = |S|_F^2, c = n / (n - 1) and the divisor D(n) = n - ddof of the covariance, leaving i out is the
rank-one change S_-i = S - c x_i x_i^T, so that

    influence = F / D(n)^2 - (F - 2 c q_i + c^2 r_i^2) / D(n-1)^2 = own + shared + shrinking
    own       = (2 c - c^2) r_i^2 / D(n-1)^2             what the sample would do all alone
    shared    = 2 c (q_i - r_i^2) / D(n-1)^2             = 2 c sum_{j != i} (x_i . x_j)^2 / D(n-1)^2
    shrinking = F (1 / D(n)^2 - 1 / D(n-1)^2)            the divisor's part: one number per class

The sum is formed from its terms, which are of the size of the result; the difference of the two
norms, which are n times as large, is never taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.measure.influence.core_pool import CorePool
from rarefy.measure.influence.products import gram_squares

Floats = NDArray[np.float64]
Norm = TypeVar("Norm", float, Floats)


@dataclass(frozen=True)
class Terms:
    """The score of each sample and the three terms it is the sum of: (sample,)."""

    influence: Floats
    own: Floats
    shared: Floats
    shrinking: Floats


def check_ddof(ddof: int) -> None:
    if ddof not in (0, 1):
        raise bad_value("ddof", ddof, "must be 0 or 1")


def divisor_step(divisor: float) -> float:
    """1 / D^2 - 1 / (D - 1)^2, without cancellation."""
    return -(2 * divisor - 1) / (divisor * (divisor - 1)) ** 2


def leave_one_out(
    count: int, q: ArrayLike, r: ArrayLike, norm: float | Floats, ddof: int = 1
) -> Terms:
    """Terms of a class of ``count`` samples; q and r: (sample,), norm: F = |S|_F^2 (of classes of
    one size together: one per sample).

    NaN where the covariance without the sample is undefined: a class of one, and one of two with
    ddof = 1.
    """
    check_ddof(ddof)
    q, r = np.asarray(q, dtype=np.float64), np.asarray(r, dtype=np.float64)
    if count - 1 - ddof <= 0:
        unknown = np.full(r.shape, np.nan)
        return Terms(unknown, unknown.copy(), unknown.copy(), unknown.copy())
    c = count / (count - 1)
    less = float(count - 1 - ddof)
    # 2 c - c^2 = n (n - 2) / (n - 1)^2: exactly 0 for two samples
    own = count * (count - 2) / (count - 1) ** 2 * (r / less) ** 2
    shared = 2 * c * (q - r * r) / less**2
    shrinking = np.full(r.shape, norm * divisor_step(count - ddof))
    return Terms(own + shared + shrinking, own, shared, shrinking)


def add_one(count: int, q: ArrayLike, r: ArrayLike, norm: float, ddof: int = 1) -> Terms:
    """Terms of samples that are not among the ``count`` samples of their class: the influence each
    would have if it alone joined them.

    x = z - mean of the class, and S_+ = S + n / (n + 1) x x^T; q, r and norm from S and x.
    """
    check_ddof(ddof)
    q, r = np.asarray(q, dtype=np.float64), np.asarray(r, dtype=np.float64)
    if count - ddof <= 0:
        unknown = np.full(r.shape, np.nan)
        return Terms(unknown, unknown.copy(), unknown.copy(), unknown.copy())
    c = count / (count + 1)
    more = float(count + 1 - ddof)
    own = (c * r / more) ** 2
    shared = 2 * c * q / more**2
    shrinking = np.full(r.shape, norm * divisor_step(more))
    return Terms(own + shared + shrinking, own, shared, shrinking)


def covariance_norm(count: int, norm: Norm, ddof: int = 1) -> Norm:
    """|Cov|_F^2 = F / D(n)^2 of classes of one size; NaN where it is undefined."""
    return norm / (count - ddof) ** 2 if count - ddof > 0 else norm * np.nan


def gram_route(
    load: Callable[[int, int], Tensor],
    borrow: Callable[[int, int], Tensor],
    q: Tensor,
    tile: int,
    pool: CorePool,
    first: int = 0,
) -> Iterator[int]:
    """q_i = sum_j (x_i . x_j)^2 for a class of ``len(q)`` samples, added into ``q`` in place; then
    F = sum_i q_i. For classes with n < 2 d, where it is cheaper than S.

    ``load(a, b)`` gives the centred rows a .. b-1, ``borrow(a, b)`` the same until the thread that
    asks does so again. Tiles on and above the diagonal of the matrix of inner products are formed,
    each once, and one beside the diagonal serves both of its sides.
    Yields after each strip of tiles the row to go on with (as ``first``, with this ``q``).
    """
    count = len(q)
    for start in range(first, count, tile):
        stop = min(start + tile, count)
        mine = load(start, stop)

        def tile_sums(other: int, mine: Tensor = mine, start: int = start) -> tuple[Tensor, Tensor]:
            rows = mine if other == start else borrow(other, min(other + tile, count))
            squares = gram_squares(mine, rows)
            return squares.sum(dim=1), squares.sum(dim=0)

        others = range(start, count, tile)
        for other, (down, across) in zip(others, pool.map(tile_sums, others), strict=True):
            q[start:stop] += down
            if other > start:
                q[other : other + tile] += across
        yield stop


def row_squares(rows: Tensor) -> Tensor:
    """|x|^2 of each row."""
    return torch.linalg.vector_norm(rows, dim=1).square_()
