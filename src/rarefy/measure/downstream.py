"""What an embedding is worth downstream: similarity of positive pairs, a linear regression head.

Embeddings are (..., sample, m), their leading axes runs and whatever else stands beside them (the
steps at which a network is read). Sums are kept in float64: an embedding holds neurons whose sizes
differ by many orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value

FLOOR = 1e-12
"""Added to the variance of every standardised column: stands for the pseudo-inverse where columns
are zero or repeat each other, and is too small to be seen anywhere else."""
ACTIVE_SAMPLES = 20
"""Least number of head samples on which a neuron must be active (not exactly zero) to get a
coefficient. Behind a threshold a neuron may pass it once in thousands of samples, by a hair:
least squares then fits that one sample with a coefficient of any size, and the next sample that
passes it by more ruins the test error. From 20 samples on a coefficient is an average."""


def pair_cosines(f_x: Tensor, f_y: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine of f(X_n) and f(Y_n), and whether it is defined: both (..., sample).

    An embedding that is exactly zero (no neuron passes its threshold) has no direction. Its pair
    counts as 0: nothing that the two share is seen.
    """
    largest_x, largest_y = (f.abs().amax(dim=-1) for f in (f_x, f_y))
    defined = (largest_x > 0) & (largest_y > 0)
    unit_x, unit_y = _unit(f_x, largest_x), _unit(f_y, largest_y)
    return torch.where(defined, (unit_x * unit_y).sum(dim=-1), 0.0), defined


def _unit(f: Tensor, largest: Tensor) -> Tensor:
    """f / |f|, divided by its largest entry first: squares of small numbers vanish in float32."""
    scaled = f / torch.where(largest > 0, largest, 1.0)[..., None]
    return scaled / torch.linalg.vector_norm(scaled, dim=-1, keepdim=True).clamp(min=1)


class MaskedMean:
    """A mean over samples that come in chunks: NaN where no sample was counted."""

    def __init__(self) -> None:
        self.total: Tensor | float = 0.0
        self.count: Tensor | float = 0.0

    def add(self, values: Tensor, counted: Tensor | None = None) -> None:
        """values: (..., sample); ``counted``: boolean, broadcasts to them (default: all)."""
        values = values.to(torch.float64)
        mask = torch.ones_like(values) if counted is None else counted.expand_as(values)
        self.total = self.total + (values * mask).sum(dim=-1)
        self.count = self.count + mask.sum(dim=-1)

    @property
    def value(self) -> Tensor:
        return torch.as_tensor(self.total) / torch.as_tensor(self.count)


@dataclass(frozen=True)
class LinearHead:
    """f coefficients + intercept; coefficients: (..., m, targets), intercept: (..., targets)."""

    coefficients: Tensor
    intercept: Tensor

    def predict(self, embeddings: Tensor) -> Tensor:
        """(..., sample, targets), float64."""
        return embeddings.to(torch.float64) @ self.coefficients + self.intercept[..., None, :]


class HeadMoments:
    """First and second moments of embeddings and targets, from which a head is solved.

    All targets share one matrix, so that every coordinate of a latent is regressed at once; the
    head of a linear function of them is the same function of the heads.
    """

    def __init__(self) -> None:
        self.samples = 0
        self._ff: Tensor | float = 0.0
        self._ft: Tensor | float = 0.0
        self._f: Tensor | float = 0.0
        self._t: Tensor | float = 0.0
        self._active: Tensor | int = 0

    def add(self, embeddings: Tensor, targets: Tensor) -> None:
        """embeddings: (..., sample, m); targets: (..., sample, targets), broadcast to them."""
        f, t = embeddings.to(torch.float64), targets.to(torch.float64)
        self.samples += f.shape[-2]
        self._ff = self._ff + f.transpose(-1, -2) @ f
        self._ft = self._ft + f.transpose(-1, -2) @ t
        self._f = self._f + f.sum(dim=-2)
        self._active = self._active + (f != 0).sum(dim=-2)
        self._t = self._t + t.sum(dim=-2)

    def solve(self, ridge: float = 0.0) -> LinearHead:
        """Least squares with an intercept. ``ridge`` is in units of a column's variance; a neuron
        that is active on fewer than ``ACTIVE_SAMPLES`` samples, or constant, gets coefficient 0."""
        ff, ft, f, t = (torch.as_tensor(v) for v in (self._ff, self._ft, self._f, self._t))
        check_head(self.samples, ff.shape[-1], ridge, "samples")
        mean_f, mean_t = f / self.samples, t / self.samples
        covariance = ff / self.samples - mean_f[..., :, None] * mean_f[..., None, :]
        cross = ft / self.samples - mean_f[..., :, None] * mean_t[..., None, :]
        # standardised columns: otherwise a neuron of small weights would count as a missing one
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        constant = variance <= FLOOR * ff.diagonal(dim1=-2, dim2=-1) / self.samples
        left_out = constant | (torch.as_tensor(self._active) < ACTIVE_SAMPLES)
        inverse = torch.where(left_out, 0.0, variance.clamp(min=0).rsqrt())
        correlation = inverse[..., :, None] * covariance * inverse[..., None, :]
        identity = torch.eye(correlation.shape[-1], dtype=torch.float64, device=correlation.device)
        factor = torch.linalg.cholesky(correlation + (ridge + FLOOR) * identity)
        standard = torch.cholesky_solve(inverse[..., :, None] * cross, factor)
        coefficients = inverse[..., :, None] * standard
        shift = (mean_f[..., None, :] @ coefficients)[..., 0, :]
        return LinearHead(coefficients, mean_t - shift)


def check_head(samples: int, neurons: int, ridge: float, name: str) -> None:
    """Refuse a regression that could fit any target, or in which no neuron could count, by the
    caller's ``name`` for its samples."""
    if samples <= neurons:
        raise bad_value(name, samples, f"must be more than the {neurons} neurons of the head")
    if samples < ACTIVE_SAMPLES:
        least = f"must be at least {ACTIVE_SAMPLES}: a neuron active on fewer has no coefficient"
        raise bad_value(name, samples, least)
    if not 0 <= ridge < float("inf"):
        raise bad_value("ridge", ridge, "must be finite and at least 0")


class ErrorMoments:
    """Second moments of a head's errors and of its targets on test samples that come in chunks."""

    def __init__(self) -> None:
        self.samples = 0
        self._ee: Tensor | float = 0.0
        self._tt: Tensor | float = 0.0
        self._t: Tensor | float = 0.0

    def add(self, predicted: Tensor, targets: Tensor) -> None:
        """predicted: (..., sample, targets); targets: broadcast to them."""
        t = targets.to(torch.float64)
        error = predicted.to(torch.float64) - t
        self.samples += t.shape[-2]
        self._ee = self._ee + error.transpose(-1, -2) @ error
        self._tt = self._tt + t.transpose(-1, -2) @ t
        self._t = self._t + t.sum(dim=-2)

    @property
    def error(self) -> Tensor:
        """E[e e^T]: (..., targets, targets); its diagonal is each target's mean squared error."""
        return torch.as_tensor(self._ee) / self.samples

    @property
    def covariance(self) -> Tensor:
        """Of the targets: (..., targets, targets)."""
        mean = torch.as_tensor(self._t) / self.samples
        return torch.as_tensor(self._tt) / self.samples - mean[..., :, None] * mean[..., None, :]


def along(moments: Tensor, direction: Tensor) -> Tensor:
    """u^T A u for moments (..., t, t) and directions (..., t): the moment of one linear function of
    the targets."""
    u = direction.to(moments.dtype)
    return (u[..., None, :] @ moments @ u[..., :, None])[..., 0, 0]
