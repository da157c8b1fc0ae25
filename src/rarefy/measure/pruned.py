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
from rarefy.measure.ranking import auroc
from rarefy.train.contrastive import Contrastive, Fixed
from rarefy.train.losses import softmax_weights


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
    with those of ``kept`` (run, m) only. Splits are by whether a sample contains one of the
    features ``rare``, by their indices. With a ``context`` each batch counts as a run-step."""

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
        bare = replace(problem, pruning=None)
        masked = replace(problem, pruning=Fixed(kept))
        self._extra = torch.zeros_like(self.weights)
        logits: dict[str, list[Tensor]] = {"dense": [], "masked": []}
        negatives: dict[str, list[Tensor]] = {"dense": [], "masked": []}
        contains, carried, lost, size = [], [], [], []
        for index in range(batches):
            if context is not None:  # a long measurement counts as work
                context.check_time()
                context.advance(len(kept))
            batch = data.sample(draws, samples, index)
            f_x, f_y = problem.embed(parameters, batch.x), problem.embed(parameters, batch.y)
            for name, mask in (("dense", None), ("masked", kept)):
                softmax = softmax_weights(f_x, f_y, problem.tau, mask)[0]
                positive = torch.diagonal(softmax, dim1=1, dim2=2)
                logits[name].append(positive)
                negatives[name].append((1 - positive) / (samples - 1))
            contains.append(batch.present()[:, :, rare].any(dim=2))
            out = (~kept)[:, None, :]
            carried.append((f_x * f_y * out).sum(dim=2))
            whole = f_x.square().sum(dim=2)
            size.append(whole)
            lost.append((f_x.square() * out).sum(dim=2) / whole.clamp(min=1e-30))
            pruned = masked.gradients(parameters, batch)[1]["weights"]
            self._extra += (pruned - bare.gradients(parameters, batch)[1]["weights"]) / batches
        self.contains = torch.cat(contains, dim=1)
        self._logits = {name: torch.cat(parts, dim=1) for name, parts in logits.items()}
        self._negatives = {name: torch.cat(parts, dim=1) for name, parts in negatives.items()}
        self.carried, self.lost = torch.cat(carried, dim=1), torch.cat(lost, dim=1)
        self.size = torch.cat(size, dim=1)

    def _split(self, values: Tensor) -> Tensor:
        """Mean over samples with, then without a rare feature: (run, 2)."""
        return torch.stack(
            [mean_where(values, self.contains), mean_where(values, ~self.contains)], dim=1
        )

    def positive_logits(self) -> Tensor:
        """l'_p of (19): (run, [with, without], [dense, masked])."""
        return torch.stack([self._split(self._logits[n]) for n in ("dense", "masked")], dim=2)

    def negative_logits(self) -> Tensor:
        """Mean l'_s of (20) of one negative: (run, [with, without], [dense, masked])."""
        return torch.stack([self._split(self._negatives[n]) for n in ("dense", "masked")], dim=2)

    def first_order_fall(self, tau: float) -> Tensor:
        """Fall of l'_p by (211): (run, [with, without])."""
        dense = self._logits["dense"]
        return self._split(dense * (1 - dense) * self.carried / tau)

    def extra_growth(self, lr: float, member: Tensor) -> Tensor:
        """Growth a step that pruning adds along each feature, relative to the weight along it:
        least squares over the neurons of ``member`` (run, m, d): (run, d); NaN for empty sets."""
        along = projections(self.weights, self.dictionary) * member
        extra = -lr * projections(self._extra, self.dictionary) * member
        square = along.square().sum(dim=1)
        return torch.where(square > 0, (along * extra).sum(dim=1) / square, torch.nan)

    def telling(self) -> Tensor:
        """AUROC of label-free scores for 'contains a rare feature', (run, 3): the share of a
        sample's squared embedding that the pruned neurons carry; the fall of its positive logit;
        and, as a control that knows nothing of pruning, the size of its embedding (a sample with
        a rare feature has more features than others)."""
        fall = self._logits["dense"] - self._logits["masked"]
        scores = (self.lost, fall, self.size)
        return torch.stack([auroc(score, self.contains) for score in scores], dim=1)
