"""What pruning does to a network at one moment: who is left out, which samples notice, and how
much faster each feature grows in the next step (000 Theorem 3.2, Lemma F.2)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.rng import Draws
from rarefy.data.sparse_coding import SparseCoding
from rarefy.measure.alignment import projections
from rarefy.train.contrastive import Contrastive, FixedMask
from rarefy.train.losses import softmax_weights

NETWORKS = ("dense", "masked")
"""All neurons; without the pruned ones."""


def share_within(chosen: Tensor, member: Tensor) -> Tensor:
    """Share of the ``chosen`` neurons, (run, m), that are ``member``, (run, m); NaN if none is
    chosen: (run,)."""
    count = chosen.sum(dim=1)
    both = (chosen & member).sum(dim=1).to(torch.float64)
    return torch.where(count > 0, both / count.clamp(min=1), torch.nan)


def strongest_feature(weights: Tensor, dictionary: Tensor) -> Tensor:
    """The feature with the largest |<w_i, M_j>|: (run, m)."""
    return projections(weights, dictionary).abs().argmax(dim=2)


def mean_where(values: Tensor, chosen: Tensor) -> Tensor:
    """Mean over the last dimension where ``chosen``; NaN if nowhere."""
    count = chosen.sum(dim=-1)
    total = torch.where(chosen, values, 0.0).sum(dim=-1)
    return torch.where(count > 0, total / count.clamp(min=1), torch.nan)


class PruningEffect:
    """One pass over ``batches`` evaluation batches from one set of weights, with all neurons and
    with those of ``kept`` (run, m). Splits are by whether a sample contains one of the features
    ``rare``, by their indices. With a ``context`` each batch counts as a run-step."""

    def __init__(
        self,
        problem: Contrastive,
        parameters: dict[str, Tensor],
        kept: Tensor,
        data: SparseCoding,
        draws: Draws,
        rare: Tensor,
        samples: int,
        batches: int,
        context: Context | None = None,
    ) -> None:
        self.weights, self.dictionary = parameters["weights"], data.dictionary
        masks = {"dense": None, "masked": kept}
        dense, masked = (replace(problem, pruning=p) for p in (None, FixedMask(kept)))
        self._extra = torch.zeros_like(self.weights)
        seen: dict[str, list[Tensor]] = {}

        def note(**values: Tensor) -> None:
            for name, value in values.items():
                seen.setdefault(name, []).append(value)

        for index in range(batches):
            if context is not None:  # a long measurement counts as work
                context.check_time()
                context.advance(len(kept))
            batch = data.sample(draws, samples, index)
            f_x, f_y = problem.embed(parameters, batch.x), problem.embed(parameters, batch.y)
            softmax = {n: softmax_weights(f_x, f_y, problem.tau, m)[0] for n, m in masks.items()}
            note(**{n: torch.diagonal(s, dim1=1, dim2=2) for n, s in softmax.items()})
            note(contains=batch.present()[:, :, rare].any(dim=2))
            pruned = masked.gradients(parameters, batch)[1]["weights"]
            self._extra += (pruned - dense.gradients(parameters, batch)[1]["weights"]) / batches
        self._seen = {name: torch.cat(parts, dim=1) for name, parts in seen.items()}
        self.contains = self._seen["contains"]

    def _split(self, values: Tensor) -> Tensor:
        """Mean over samples with, then without a rare feature: (run, 2)."""
        return torch.stack(
            [mean_where(values, self.contains), mean_where(values, ~self.contains)], dim=1
        )

    def positive_logits(self) -> Tensor:
        """l'_p of (19): (run, [with, without], network)."""
        return torch.stack([self._split(self._seen[name]) for name in NETWORKS], dim=2)

    def extra_growth(self, lr: float, member: Tensor) -> Tensor:
        """Growth per step that pruning adds along each feature, relative to the weight along it:
        least squares over the neurons of ``member`` (run, m, d): (run, d); NaN for empty sets."""
        along = projections(self.weights, self.dictionary) * member
        extra = -lr * projections(self._extra, self.dictionary) * member
        square = along.square().sum(dim=1)
        return torch.where(square > 0, (along * extra).sum(dim=1) / square, torch.nan)
