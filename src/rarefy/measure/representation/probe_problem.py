"""The loss of a linear probe in coordinates in which it is round, so that few steps suffice.

Features are standardised and turned into their principal directions. There the curvature of the
loss is about s_j / classes along direction j, s_j the variance (the bound of Boehning 1992 has 1/2
for 1 / classes); coordinates are stretched by the square root of that and the penalty. Networks'
features are so correlated that descent in the features themselves takes many times the steps.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rarefy.core.precision import matrix_products
from rarefy.core.threads import threads_for
from rarefy.measure.representation.labelled import class_counts
from rarefy.measure.representation.lbfgs import Point, minimise

_SILENT = 1e-9
"""A column whose deviation is this small beside its size is constant up to rounding."""
_FLAT = 1e-12
"""A direction whose variance is this small beside the largest holds nothing but rounding."""
_ROUNDING = {torch.float32: 1e-6, torch.float64: 1e-13}
_VALUES = {"cpu": 1 << 20, "cuda": 1 << 26}
"""Values of features and scores at a time. On a CPU a part is used twice while it is in the cache;
a GPU is slowed by small parts."""


class Solution(NamedTuple):
    """Coefficients (c, d) and intercept (c,) in float64, of classes that have samples. error: bound
    on the distance of the coefficients to the best ones, relative to their norm or to 1 if that is
    larger: |gradient| / strength, because the loss is strongly convex, once the intercept is
    right."""

    coefficients: Tensor
    intercept: Tensor
    error: float
    steps: int
    converged: bool


class ProbeProblem:
    """Training features and labels, made ready once for a whole path of strengths.

    features: (sample, d), finite, float32 or float64, which products are made in (float64 also
    where float32 cannot tell a step from rounding); labels: (sample,) of 0 .. classes - 1. Classes
    without a sample take no part.
    """

    def __init__(self, features: Tensor, labels: Tensor, classes: int) -> None:
        self.present = class_counts(labels, classes).nonzero()[:, 0]
        """(c,): the labels that occur."""
        self._labels = torch.searchsorted(self.present, labels)
        self.centre, self.scale = _mean_and_deviation(features)
        """(d,), float64; scale 0: a constant column, left out."""
        self._kind, self._device = features.dtype, features.device
        with matrix_products("float32", self._device):
            self._variance, self._directions = _principal(features, self.centre, self.scale)
            turn = self._directions.to(self._kind)
            turned = [
                standardised(part, self.centre, self.scale).to(self._kind) @ turn
                for part in _parts(features)
            ]
            self._rows = torch.cat(turned)

    def solve(
        self, strength: float, coefficients: Tensor, intercept: Tensor, tolerance: float, most: int
    ) -> Solution:
        """Minimise the mean of -log p(label) + strength / 2 |W|^2 from a start.

        coefficients: (c, d) on standardised features; intercept: (c,), not penalised.
        """
        turned = coefficients.to(torch.float64) @ self._directions
        start = torch.cat([turned, intercept.to(torch.float64)[:, None]], dim=1)
        start -= start.mean(dim=0)  # see _look
        stretch = torch.cat(
            [
                self._variance / len(self.present) + strength,
                self._variance.new_full((1,), 1 / len(self.present)),
            ]
        ).sqrt()

        def look(place: Tensor) -> Point:
            return self._look(place, stretch, strength)

        products = self._rows.numel() * len(self.present)
        with threads_for(products, self._device), matrix_products("float32", self._device):
            found = minimise(look, start * stretch, tolerance, most, _ROUNDING[self._kind])
            if self._kind == torch.float32 and not found.converged and found.steps < most:
                # classes so far apart that almost nothing is left of the loss; weaker strengths,
                # which come after, will need it too
                self._kind, self._rows = torch.float64, self._rows.double()
                left = most - found.steps
                more = minimise(look, found.place, tolerance, left, _ROUNDING[self._kind])
                found = more._replace(steps=found.steps + more.steps)
        end = found.place / stretch
        coefficients = end[:, :-1] @ self._directions.T
        return Solution(coefficients, end[:, -1], found.error, found.steps, found.converged)

    def _look(self, place: Tensor, stretch: Tensor, strength: float) -> Point:
        weights = place / stretch
        loss, gradient = self._loss(weights[:, :-1].to(self._kind), weights[:, -1].to(self._kind))
        gradient[:, :-1] += strength * weights[:, :-1]
        # what is added to all classes alike has no effect: the sum over classes is zero, but for
        # rounding, which would grow there with nothing but a weak penalty against it
        gradient -= gradient.mean(dim=0)
        loss = loss + strength / 2 * weights[:, :-1].square().sum()
        # turning keeps lengths, so this is the gradient with respect to the coefficients
        allowed = strength * weights[:, :-1].norm().clamp(min=1.0)
        free = gradient[:, -1].norm() * len(gradient)  # curvature there is about 1 / classes
        error = torch.maximum(gradient[:, :-1].norm() / allowed, free)
        value, size = torch.stack([loss, error]).tolist()
        return Point(value, gradient / stretch, size)

    def _loss(self, weights: Tensor, intercept: Tensor) -> tuple[Tensor, Tensor]:
        """Mean loss, and its gradient (c, directions + 1), both float64, a part of the rows at a
        time."""
        count, width = self._rows.shape
        classes = len(weights)
        step = max(1, _VALUES[self._device.type] // (width + classes))
        loss = self._variance.new_zeros(())
        gradient = self._variance.new_zeros(classes, width + 1)
        for first in range(0, count, step):
            rows, labels = self._rows[first : first + step], self._labels[first : first + step]
            likely = torch.log_softmax(torch.addmm(intercept, rows, weights.T), dim=1)
            right = likely.gather(1, labels[:, None])
            loss -= right.sum(dtype=torch.float64)
            likely.exp_().scatter_(1, labels[:, None], torch.expm1(right))
            gradient[:, :-1] += likely.T @ rows
            gradient[:, -1] += likely.sum(dim=0, dtype=torch.float64)
        return loss / count, gradient / count


def _mean_and_deviation(features: Tensor) -> tuple[Tensor, Tensor]:
    """Of every column, in float64, which is not made of all rows at once."""
    parts = list(_parts(features))
    mean = torch.stack([part.sum(dim=0, dtype=torch.float64) for part in parts]).sum(dim=0)
    mean = mean / len(features)
    square = torch.zeros_like(mean)
    for part in parts:
        square += (part.to(torch.float64) - mean).square_().sum(dim=0)
    scale = (square / len(features)).sqrt()
    size = features.abs().amax(dim=0).to(torch.float64)
    return mean, torch.where(scale > _SILENT * size, scale, 0.0)


def standardised(features: Tensor, centre: Tensor, scale: Tensor) -> Tensor:
    """(x - centre) / scale in float64, 0 where scale is."""
    inverse = torch.where(scale > 0, 1 / scale, 0.0)
    return (features.to(torch.float64) - centre) * inverse


def _parts(features: Tensor) -> tuple[Tensor, ...]:
    return features.split(max(1, _VALUES[features.device.type] // features.shape[1]))


def _principal(features: Tensor, centre: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Variances along the principal directions of standardised features that have any, (k,), and
    these directions, (d, k)."""
    width = features.shape[1]
    if len(features) < width:  # (of 230 rows of 3,072 pixels in 0.05 s where eigh takes 8)
        rows = standardised(features, centre, scale)
        _, sizes, across = torch.linalg.svd(rows, full_matrices=False)
        return _told(sizes.square() / len(features), across.T, scale)
    scatter = torch.zeros(width, width, dtype=torch.float64, device=features.device)
    for part in _parts(features):
        rows = standardised(part, centre, scale)
        scatter.addmm_(rows.T, rows)
    variance, directions = torch.linalg.eigh(scatter / len(features))
    return _told(variance, directions, scale)


def _told(variance: Tensor, directions: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    there = variance > max(_FLAT * float(variance.max()), 0.0)
    # a constant column has no part in them, but for rounding
    return variance[there], torch.where((scale > 0)[:, None], directions[:, there], 0.0)
