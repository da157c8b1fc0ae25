"""Linear probes: regularised logistic regressions for many runs and many labels at once.

Logistic regression and not a least-squares classifier, because it is what a linear probe means in
the papers; solved by Newton's method, because a probe that is only nearly trained would measure its
optimiser. One step needs a Hessian per label, (m+1) x (m+1), which is cheap for tens of neurons and
feasible for hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rarefy.core.errors import bad_value

TOLERANCE = 1e-12
"""Largest entry of the gradient of the mean loss at which a probe counts as trained."""
NEWTON_STEPS = 100
HALVINGS = 40
"""A step is halved at most so often; one that does not lower the loss even then is not taken."""
SUFFICIENT = 1e-4
"""Share of the decrease that the gradient promises which a step must bring (Armijo 1966)."""
ROUNDING = 1e-12
"""Relative error of a computed loss: near the end all steps are alike."""


@dataclass(frozen=True)
class Probe:
    """One linear classifier per label, on standardised embeddings.

    centre, scale: (run, m), of the training samples (scale 0: a silent neuron, left out);
    coefficients: (run, label, m); intercept: (run, label); trained: (run, label), false where the
    training samples hold one class only, or Newton's method did not arrive.
    """

    centre: Tensor
    scale: Tensor
    coefficients: Tensor
    intercept: Tensor
    trained: Tensor

    def scores(self, embeddings: Tensor) -> Tensor:
        """Log odds, (run, label, sample), NaN for a probe that is not trained.

        Rounded to float32: samples of one embedding (zero, where no neuron is active) must tie, and
        a matrix product gives them different last digits of float64.
        """
        x = _standardised(embeddings, self.centre, self.scale)
        scores = self.coefficients @ x.transpose(1, 2) + self.intercept[:, :, None]
        return torch.where(self.trained[:, :, None], scores, torch.nan).to(torch.float32)


def fit_probe(embeddings: Tensor, labels: Tensor, strength: float = 1.0) -> Probe:
    """Minimise |v|^2 / 2 + strength * sum over samples of weight * log(1 + exp(-y (v x + b))).

    embeddings: (run, sample, m); labels: (run, sample, label), boolean. Embeddings are standardised
    first, so that the size of a network's weights does not matter. A sample weighs n / (2 n_class):
    both classes count the same, and log odds 0 is the threshold for balanced accuracy.
    """
    if not 0 < strength < float("inf"):
        raise bad_value("strength", strength, "must be positive and finite")
    if labels.shape[:2] != embeddings.shape[:2]:
        expected = f"must be (run, sample, label) with {tuple(embeddings.shape[:2])} in front"
        raise bad_value("labels", tuple(labels.shape), expected)
    f = embeddings.to(torch.float64)
    centre, scale = f.mean(dim=1), f.std(dim=1, correction=0)
    # a column that is constant up to rounding tells nothing
    size = f.abs().amax(dim=1)
    scale = torch.where(scale > 1e-9 * size, scale, 0.0)
    x = _standardised(f, centre, scale)
    x = torch.cat([x, torch.ones_like(x[:, :, :1])], dim=2)
    yes = labels.transpose(1, 2)
    weight = _class_weights(yes)
    both = torch.isfinite(weight).all(dim=2)
    weight = torch.where(both[:, :, None], weight, 0.0)
    penalty = torch.full((x.shape[2],), 1 / (strength * x.shape[1]), dtype=f.dtype, device=f.device)
    penalty[-1] = 0.0  # the intercept is free
    found, arrived = _newton(x, torch.where(yes, 1.0, -1.0).to(f.dtype), weight, penalty)
    return Probe(centre, scale, found[:, :, :-1], found[:, :, -1], both & arrived)


def _standardised(embeddings: Tensor, centre: Tensor, scale: Tensor) -> Tensor:
    inverse = torch.where(scale > 0, 1 / scale, 0.0)
    return (embeddings.to(torch.float64) - centre[:, None]) * inverse[:, None]


def _class_weights(yes: Tensor) -> Tensor:
    """n / (2 n_class) of each sample's class; infinite where a class is missing."""
    positives = yes.sum(dim=2, keepdim=True).to(torch.float64)
    n = yes.shape[2]
    weight = torch.where(yes, n / (2 * positives), n / (2 * (n - positives)))
    one_class = (positives == 0) | (positives == n)
    return torch.where(one_class, torch.inf, weight)


def _newton(x: Tensor, sign: Tensor, weight: Tensor, penalty: Tensor) -> tuple[Tensor, Tensor]:
    """Damped Newton steps for every (run, label): coefficients (run, label, k), and who arrived.

    Each problem stops by itself, so that it gives the same alone and in a batch.
    """
    runs, labels, n = sign.shape
    v = torch.zeros(runs, labels, x.shape[2], dtype=x.dtype, device=x.device)
    arrived = torch.zeros(runs, labels, dtype=torch.bool, device=x.device)
    x_t = x.transpose(1, 2)

    def loss(v: Tensor) -> Tensor:
        fit = (weight * softplus(-sign * (v @ x_t))).sum(dim=2) / n
        return fit + (penalty * v.square()).sum(dim=2) / 2

    for _ in range(NEWTON_STEPS):
        miss = torch.sigmoid(-sign * (v @ x_t))  # 1 - probability of the right class
        gradient = -((weight * miss * sign) @ x) / n + penalty * v
        arrived = gradient.abs().amax(dim=2) <= TOLERANCE
        if bool(arrived.all()):
            break
        curvature = weight * miss * (1 - miss) / n
        step = torch.stack(
            [_solve(x, x_t, curvature[:, j], gradient[:, j], penalty) for j in range(labels)], dim=1
        )
        before = loss(v)
        promised = SUFFICIENT * (gradient * step).sum(dim=2)
        size = torch.where(arrived, 0.0, torch.ones_like(before))
        for _ in range(HALVINGS):
            raised = loss(v - size[:, :, None] * step) > before * (1 + ROUNDING) - size * promised
            if not bool(raised.any()):
                break
            size = torch.where(raised, size / 2, size)
        else:
            size = torch.where(raised, 0.0, size)
        v = v - size[:, :, None] * step
    return v, arrived


def _solve(x: Tensor, x_t: Tensor, curvature: Tensor, gradient: Tensor, penalty: Tensor) -> Tensor:
    """Newton's step of one label: (X^T diag(curvature) X + penalty)^-1 gradient, (run, k)."""
    hessian = torch.bmm(x_t * curvature[:, None, :], x) + torch.diag(penalty)
    # far from the answer every sample may be classified so surely that the intercept's row vanishes
    hessian.diagonal(dim1=1, dim2=2).add_(1e-12)
    factor = torch.linalg.cholesky(hessian)
    return torch.cholesky_solve(gradient[:, :, None], factor)[:, :, 0]


def balanced_accuracy(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean of the shares of positives and of negatives on the right side of 0: (run, label).

    scores: (run, label, sample); labels: (run, sample, label). A score of exactly 0 is half right.
    NaN where the test samples hold one class only or a score is not finite.
    """
    yes = labels.transpose(1, 2)
    right = torch.where(scores == 0, 0.5, ((scores > 0) == yes).to(torch.float64))
    shares = [
        (right * part).sum(dim=2) / part.sum(dim=2) for part in (yes, ~yes)
    ]  # 0/0 is NaN: nothing of that class
    known = torch.isfinite(scores).all(dim=2)
    return torch.where(known, (shares[0] + shares[1]) / 2, torch.nan)
