"""Cross-entropy of the multi-view network and its update (004 eq. 14-18), many runs at once.

    F_c(X) = sum_r sum_p ReLU(<w_cr, x_p> + b_cr)

One group of m neurons an output, output weights frozen at 1. Nearly all neurons sleep through the
patches that are noise: such a patch is normal with std sigma |w| to a neuron, and its threshold is
many of those away. Noise patches are therefore drawn, and shown, only to neurons within ``AWAKE``
of them; the chance to miss a single activation that way is below 1e-17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.multi_view import Views

AWAKE = 8.5
"""A neuron may see noise if its threshold is at most so many stds of its response away."""
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

    views: Views
    target: Tensor


@dataclass(frozen=True)
class MultiViewClassifier:
    """patches: P; bias: one of ``BIASES``; bias_rate: what the norm of a neuron's movement is
    multiplied with, 1/log^5(d) in (18); scheduled: movement (over eta) that a scheduled bias
    assumes; linear: no ReLU (a neuron's response is <w, x> + b).

    coarse: the side each output answers for, (output,), to train the maxima over a side's outputs
    on the coarse task (App. G.4); None: outputs are labels.
    """

    patches: int
    bias: str = "following"
    bias_rate: float = 0.0
    scheduled: float = 0.0
    linear: bool = False
    coarse: Tensor | None = None

    def __post_init__(self) -> None:
        if self.bias not in BIASES:
            raise bad_value("bias", self.bias, f"must be one of {', '.join(BIASES)}")

    def scores(self, parameters: dict[str, Tensor], views: Views) -> Tensor:
        """F_c(X): (run, output, n)."""
        total, _ = self._seen(parameters, views)
        return total

    def loss(self, parameters: dict[str, Tensor], batch: Any) -> Tensor:
        """Mean cross-entropy, (run,); differentiable, and then (16) is -1/P of its gradient."""
        return self._loss(self.scores(parameters, batch.views), batch.target)[0]

    def gradients(
        self, parameters: dict[str, Tensor], batch: Any
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and what plain descent at rate eta subtracts (times eta): (16) for the weights,
        (18) for the biases."""
        weights = parameters["weights"]
        runs, outputs, m, d = weights.shape
        scores, shown = self._seen(parameters, batch.views)
        loss, residual = self._loss(scores, batch.target)
        residual = residual / (residual.shape[2] * self.patches)
        found = weights.new_zeros(runs, outputs * m, d)
        for each in shown:
            rows, part = each.combination(residual, m, self.linear)
            found.flatten(0, 1).index_add_(0, _flat(rows, outputs * m), part.flatten(0, 1))
        found = found.reshape(runs, outputs, m, d)
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

    def _seen(self, parameters: dict[str, Tensor], views: Views) -> tuple[Tensor, list[_Shown]]:
        """Scores, and what was shown to whom: patches that hold something to all neurons, noise to
        those that are awake."""
        weights, bias = parameters["weights"], parameters["bias"]
        runs, outputs, m, d = weights.shape
        rows, level = (
            weights.reshape(runs, outputs * m, d),
            bias.reshape(runs, outputs * m),
        )
        every = _Shown.of(rows, level, views.patches, None, self.linear)
        total = every.over_slots(every.answer.unflatten(1, (outputs, m)).sum(dim=2))
        awake = self._awake(rows, level, views)
        if awake is None:
            return total, [every]
        some = _Shown.of(rows, level, views.noise(), awake, self.linear)
        owner = (awake // m)[:, :, None].expand(-1, -1, total.shape[2])
        return total.scatter_add(1, owner, some.over_slots(some.answer)), [every, some]

    def _awake(self, rows: Tensor, bias: Tensor, views: Views) -> Tensor | None:
        """Neurons that noise may wake, (run, count): as many in every run as in the run with most,
        the next nearest filling up."""
        if views.rest == 0:
            return None
        if self.linear:
            everyone = torch.arange(rows.shape[1], device=rows.device)
            return everyone.expand(len(rows), -1)
        distance = -bias.detach() - AWAKE * views.sigma * torch.linalg.vector_norm(
            rows.detach(), dim=2
        )
        count = int((distance <= 0).sum(dim=1).max())
        if count == 0:
            return None
        return torch.topk(distance, count, dim=1, largest=False, sorted=False).indices


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


@dataclass(frozen=True)
class _Shown:
    """Patches, (run, slot * n, d), slot by slot; the answers of neurons to them, (run, neuron,
    slot * n); and which neurons these are, (run, neuron), None for all."""

    patches: Tensor
    answer: Tensor
    neurons: Tensor | None
    n: int

    @classmethod
    def of(
        cls, rows: Tensor, level: Tensor, patches: Tensor, neurons: Tensor | None, linear: bool
    ) -> _Shown:
        """rows: (run, neuron, d); level: their biases, (run, neuron); patches: (run, n, slot, d)"""
        if neurons is not None:
            rows, level = _taken(rows, neurons), level.gather(1, neurons)
        flat = patches.transpose(1, 2).flatten(1, 2)
        answer = torch.baddbmm(level[:, :, None], rows, flat.transpose(1, 2))
        # in place: after the products it is memory that takes the time
        return cls(flat, answer if linear else answer.relu_(), neurons, patches.shape[1])

    def over_slots(self, answer: Tensor) -> Tensor:
        """Sum over the patches of each sample: (run, ..., n) from (run, ..., slot * n)."""
        return answer.unflatten(2, (-1, self.n)).sum(dim=2)

    def combination(self, residual: Tensor, m: int, linear: bool) -> tuple[Tensor, Tensor]:
        """Some neurons, (run, some), and for each the sum of residual times patch over the patches
        it is open on, (run, some, d); residual: (run, output, n). All other neurons are shut on
        everything: about half, so that half of the product is left out."""
        runs, count, patches = self.answer.shape
        if linear:
            chosen = torch.arange(count, device=residual.device).expand(runs, -1)
            open_on = torch.ones_like(self.answer)
        else:
            largest = self.answer.amax(dim=2)
            # as many in every run as in the run with most; what fills up is shut
            most = int((largest > 0).sum(dim=1).max())
            chosen = torch.topk(largest, most, dim=1, sorted=False).indices
            open_on = _taken(self.answer, chosen).sign_()
        rows = chosen if self.neurons is None else self.neurons.gather(1, chosen)
        weight = _taken(residual, rows // m)[:, :, None]
        parts = open_on.unflatten(2, (patches // self.n, self.n)).mul_(weight).flatten(2)
        return rows, torch.bmm(parts, self.patches)


def _flat(index: Tensor, count: int) -> Tensor:
    """Index into (run * count, ...) from an index into each run's own ``count``, (run, some)."""
    first = torch.arange(len(index), device=index.device) * count
    return (index + first[:, None]).flatten()


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """values[run, index[run]]: (run, some, ...). Whole rows: faster than ``gather``."""
    rows = values.flatten(0, 1).index_select(0, _flat(index, values.shape[1]))
    return rows.unflatten(0, index.shape)
