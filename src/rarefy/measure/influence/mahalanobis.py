"""How far a sample is from its class mean in units of the class's own spread, also where the class
has fewer samples than features.

The class covariance is shrunk towards a multiple of the identity with the weight that would be best
for normal data (Chen, Wiesel, Eldar and Hero 2010, Eq. (23), "OAS"): it needs nothing but the trace
and the norm of the covariance, which the score has anyway, and is positive for every n >= 2.

Up to ``FULL_WIDTH`` features this is done in all directions. Above it a factorisation for each
class would cost more than the score, so it is done in the leading principal directions of the
pooled within-class scatter (of a seeded sample of rows), and each class is taken to be isotropic
outside of them, with the variance that it has there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.measure.influence.leave_one_out import row_squares
from rarefy.measure.influence.products import times_upper, whitening
from rarefy.measure.influence.rows import Rows

FULL_WIDTH = 1024
DIRECTIONS = 256
"""Leading directions above ``FULL_WIDTH``."""
SAMPLE = 2048
"""Rows from which they are found."""
ROUNDING = 1e-12
"""Share of |S|_F^2 below which its difference to tr(S)^2 / d is what float64 leaves over."""
_EXTRA, _POWERS = 16, 2
"""Of the randomised range finder (Halko, Martinsson and Tropp 2011, Algorithm 4.4)."""


def shrinkage(count: int, width: int, trace: float, norm: float) -> float:
    """Weight of the identity, in (0, 1], from tr(S) and |S|_F^2 of the scatter matrix."""
    spread = norm - trace**2 / width
    if width == 1 or not spread > ROUNDING * norm:  # one feature, isotropic, or constant
        return 1.0
    over = (1 - 2 / width) * norm + trace**2
    return min(1.0, over / ((count + 1 - 2 / width) * spread))


@dataclass(frozen=True)
class ClassMetric:
    """The shrunk inverse covariance of one class, ready to be applied to centred rows. The product
    is done in float32, which costs the distance its last digits and saves half of its time."""

    factor: Tensor
    """Upper triangular, (k, k), float32: |y W / unit|^2, y a row's part in the directions."""
    unit: float
    """The class's mean standard deviation, so that float32 sees numbers near 1."""
    outside: float
    """1 / variance in each of the other directions."""
    directions: Tensor | None
    """(d, k), orthonormal; None: all."""
    weight: float
    """The shrinkage."""

    def distances(self, rows: Tensor, squares: Tensor) -> Tensor:
        """sqrt(x^T C^-1 x) of centred rows x, (m, d), with ``squares`` = |x|^2: (m,)."""
        return self.distances_inside(inside(rows, self.directions), squares)

    def distances_inside(self, seen: Tensor, squares: Tensor) -> Tensor:
        """The same from the rows' parts in the leading directions: (m, k)."""
        single = torch.empty(seen.shape, device=seen.device)
        torch.mul(seen, 1 / self.unit, out=single)
        found = row_squares(times_upper(single, self.factor)).double()
        if self.directions is not None:
            found += (squares - row_squares(seen)).clamp_(min=0) * self.outside
        return found.sqrt_()


def inside(rows: Tensor, directions: Tensor | None) -> Tensor:
    """The rows' parts in some directions, or the rows themselves."""
    return rows if directions is None else rows @ directions


def class_metric(
    spread: Tensor, count: int, trace: float, norm: float, width: int, directions: Tensor | None
) -> ClassMetric | None:
    """``spread``: the scatter matrix in the leading directions (or in all), of which the upper
    triangle counts, (k, k); it is overwritten. trace and norm: of the scatter matrix in all
    ``width`` directions. None where there is no spread at all, or no two samples."""
    if count < 2 or not trace > 0:
        return None
    weight = shrinkage(count, width, trace, norm)
    variance = trace / width / count
    level = weight * variance
    led = float(spread.diagonal().sum())
    covariance = spread.mul_((1 - weight) / count)
    covariance.diagonal().add_(level)
    others = width - len(covariance)
    left = max(trace - led, 0.0) / others * (1 - weight) / count if others else 0.0
    unit = variance**0.5
    factor = whitening(covariance).mul_(unit).float()
    return ClassMetric(factor, unit, 1 / (left + level), directions, weight)


def leading_directions(
    rows: Rows, most: int, sample: int, seed: int = 0, device: torch.device | str = "cpu"
) -> Tensor:
    """Leading principal directions of the pooled within-class scatter: (d, k), k <= most."""
    picked = seeded_sample(rows.labels, rows.classes, sample, seed)
    taken = rows.take(picked, device)
    taken -= taken[:1].clone()  # near zero first: the sums below then lose nothing
    present, numbered = np.unique(rows.labels[picked], return_inverse=True)
    labels = torch.from_numpy(numbered).to(device)
    means = taken.new_zeros(len(present), rows.width).index_add_(0, labels, taken)
    means /= torch.bincount(labels)[:, None]
    for first in range(0, len(taken), 512):  # never a second copy of the sample
        taken[first : first + 512] -= means[labels[first : first + 512]]
    return principal_directions(taken, most, seed)


def principal_directions(rows: Tensor, most: int, seed: int = 0) -> Tensor:
    """Leading right singular vectors of centred rows, (m, d): (d, k), k <= most, by subspace
    iteration from a seeded start."""
    most = min(most, *rows.shape)
    draws = Draws([key("influence directions", seed)], rows.device, rows.dtype)
    block = draws.normal("start", (rows.shape[1], min(rows.shape[1], most + _EXTRA)))[0]
    for _ in range(_POWERS):
        block = torch.linalg.qr(rows.T @ (rows @ block)).Q
    seen = rows @ block
    _, turned = torch.linalg.eigh(seen.T @ seen)  # ascending
    return (block @ turned.flip(1)[:, :most]).contiguous()


def seeded_sample(
    labels: NDArray[np.int64], classes: int, most: int, seed: int = 0
) -> NDArray[np.int64]:
    """At most ``most`` row numbers, ascending, drawn at random; every class that has rows is there
    as long as ``most`` allows it."""
    if len(labels) <= most:
        return np.arange(len(labels))
    draws = Draws([key("influence sample", seed)])
    order = np.argsort(draws.uniform("order", (len(labels),))[0].numpy(), kind="stable")
    _, first = np.unique(labels[order], return_index=True)  # one of each class
    rest = np.delete(order, first)
    chosen = np.concatenate([order[np.sort(first)], rest])[:most]
    return np.sort(chosen)
