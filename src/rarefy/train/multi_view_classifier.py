"""Cross-entropy of the multi-view network and its update (004 eq. 14-18), many runs at once.

    F_c(X) = sum_r sum_p ReLU(<w_cr, x_p> + b_cr)

A group of m neurons per output, output weights frozen at 1. ``rarefy.train.active_patches`` spares
neurons the patches that they would sleep through.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.multi_view import MultiViewSamples
from rarefy.train.active_patches import ActivePatches, combine_gradients, find_active_patches
from rarefy.train.built_patches import BuiltPatches

BIASES = ("following", "scheduled", "still")
"""following: (18), each neuron's own movement; scheduled: one rate for all neurons; still: none."""


def initial_neurons(
    draws: Draws, outputs: int, neurons: int, d: int, sigma_0: float, threshold: float
) -> dict[str, Tensor]:
    """weights N(0, sigma_0^2), (run, output, m, d); bias -sigma_0 c_b sqrt(log d), c_b =
    ``threshold`` (App. B.2). Outputs share no draws, but the first of a network with more outputs
    are those of one with fewer."""
    parts = [draws.normal(f"neurons {output}", (neurons, d)) for output in range(outputs)]
    weights = torch.stack(parts, dim=1) * sigma_0
    bias = torch.full_like(weights[..., 0], -sigma_0 * threshold * math.sqrt(math.log(d)))
    return {"weights": weights, "bias": bias}


@dataclass(frozen=True)
class MultiViewBatch:
    """Samples and the probability with which each has each label, (run, output, n)."""

    views: MultiViewSamples
    target: Tensor


@dataclass(frozen=True)
class MultiViewClassifier:
    """patches: P; bias: one of ``BIASES``; bias_rate: what the norm of a neuron's movement is
    multiplied with, 1/log^5(d) in (18); scheduled: movement (over eta) that a scheduled bias
    assumes; linear: no ReLU (a neuron's response is <w, x> + b).

    coarse: the side each output answers for, (output,), to train the maxima over a side's outputs
    on the coarse task (App. G.4); None: outputs are labels. compile_kernels: whether activations
    and gradients are computed by C++, on a CPU.
    """

    patches: int
    bias: str = "following"
    bias_rate: float = 0.0
    scheduled: float = 0.0
    linear: bool = False
    coarse: Tensor | None = None
    compile_kernels: bool = False

    def __post_init__(self) -> None:
        if self.bias not in BIASES:
            raise bad_value("bias", self.bias, f"must be one of {', '.join(BIASES)}")

    def scores(self, parameters: dict[str, Tensor], views: MultiViewSamples) -> Tensor:
        """F_c(X): (run, output, n)."""
        return self._seen(parameters, views)[0]

    def loss(self, parameters: dict[str, Tensor], batch: Any) -> Tensor:
        """Mean cross-entropy, (run,); differentiable, and then (16) is -1/P of its gradient."""
        return self._loss(self.scores(parameters, batch.views), batch.target)[0]

    def gradients(
        self, parameters: dict[str, Tensor], batch: Any
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and what plain descent at rate eta subtracts (times eta): (16) for the weights,
        (18) for the biases."""
        scores, shown = self._seen(parameters, batch.views)
        loss, residual = self._loss(scores, batch.target)
        residual = residual / (residual.shape[2] * self.patches)
        found = combine_gradients(shown, residual, parameters["weights"], self.linear)
        return loss, {"weights": found, "bias": self._bias_gradient(found)}

    def _bias_gradient(self, gradient: Tensor) -> Tensor:
        if self.bias == "following":
            return torch.linalg.vector_norm(gradient, dim=3) * self.bias_rate
        rate = self.scheduled * self.bias_rate if self.bias == "scheduled" else 0.0
        return torch.full_like(gradient[..., 0], rate)

    def _loss(self, scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy, (run,), and its derivative by the scores times n, (run, output, n)."""
        if self.coarse is None:
            log_p = torch.log_softmax(scores, dim=1)
            loss = -(target * log_p).sum(dim=1).mean(dim=1)
            return loss, torch.exp(log_p) - target
        sides, index = side_scores(scores, self.coarse)
        log_p = torch.log_softmax(sides, dim=1)
        loss = -(target * log_p).sum(dim=1).mean(dim=1)
        found = torch.zeros_like(scores)
        return loss, found.scatter(1, index, torch.exp(log_p) - target)

    def _seen(
        self, parameters: dict[str, Tensor], views: MultiViewSamples
    ) -> tuple[Tensor, list[ActivePatches | BuiltPatches]]:
        """Scores, and what was shown to whom."""
        weights = parameters["weights"]
        runs, outputs, m, _ = weights.shape
        given = weights, parameters["bias"], views, self.linear, self.compile_kernels
        shown = find_active_patches(*given)
        total = weights.new_zeros(runs, outputs, views.subclass.shape[1])
        for each in shown:
            total = total + each.scores(outputs, m)
        return total, shown


def side_scores(scores: Tensor, side: Tensor) -> tuple[Tensor, Tensor]:
    """The largest score of each side's outputs, (run, 2, n), and which output has it (004 Theorem
    G.3); ``side``: 0 for + or 1 for -, (output,)."""
    found = [
        torch.where((side == each)[None, :, None], scores, -torch.inf).max(dim=1) for each in (0, 1)
    ]
    return (
        torch.stack([each.values for each in found], dim=1),
        torch.stack([each.indices for each in found], dim=1),
    )
