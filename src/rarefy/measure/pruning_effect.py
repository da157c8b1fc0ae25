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
from rarefy.theory.contrastive_pruning import logit_change
from rarefy.train.contrastive import Contrastive, FixedMask
from rarefy.train.losses import softmax_weights

NETWORKS = ("dense", "masked", "random")
"""All neurons; without the pruned ones; without as many neurons chosen at random, the control."""


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


def random_mask(kept: Tensor, draws: Draws) -> Tensor:
    """As many neurons kept as in ``kept``, (run, m), chosen at random."""
    place = draws.uniform("random mask", kept.shape[1:]).argsort(dim=1).argsort(dim=1)
    return place < kept.sum(dim=1, keepdim=True)


class PruningEffect:
    """One pass over ``batches`` evaluation batches from one set of weights, with all neurons, with
    those of ``kept`` (run, m) and with as many at random. Splits are by whether a sample contains
    one of the features ``rare``, by their indices. With a ``context`` each batch counts as a
    run-step."""

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
        masks = {"dense": None, "masked": kept, "random": random_mask(kept, draws)}
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
            carried = torch.bmm(f_x * ~kept[:, None, :], f_y.transpose(1, 2))  # -Delta u of (208)
            own = torch.diagonal(carried, dim1=1, dim2=2)
            note(own=own, mean=(softmax["dense"] * carried).sum(dim=2))
            whole = f_x.square().sum(dim=2)
            lost = (f_x.square() * ~kept[:, None, :]).sum(dim=2) / whole.clamp(min=1e-30)
            note(size=whole, lost=lost)
            pruned = masked.gradients(parameters, batch)[1]["weights"]
            self._extra += (pruned - dense.gradients(parameters, batch)[1]["weights"]) / batches
        self._samples = samples
        self._tau = problem.tau[:, None]
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

    def negative_logits(self) -> Tensor:
        """Mean l'_s of (20) of one negative (all together are 1 - l'_p), as ``positive_logits``."""
        return (1 - self.positive_logits()) / (self._samples - 1)

    def first_order_fall(self) -> Tensor:
        """Fall of l'_p by (211): l'_p (u_p - sum over all of l' u) / tau, u the part of the
        similarities that the pruned neurons carry: (run, [with, without])."""
        positive = self._seen["dense"]
        change = positive * (self._seen["own"] - self._seen["mean"]) / self._tau
        return self._split(change)

    def fall_without_negatives(self) -> Tensor:
        """The same as the paper goes on with it (213), the negatives taken as 0 on average (179):
        (run, [with, without])."""
        positive = self._seen["dense"]
        return self._split(-logit_change(positive, self._seen["own"] / self._tau, 1.0))

    def extra_growth(self, lr: float, member: Tensor) -> Tensor:
        """Growth per step that pruning adds along each feature, relative to the weight along it:
        least squares over the neurons of ``member`` (run, m, d): (run, d); NaN for empty sets."""
        along = projections(self.weights, self.dictionary) * member
        extra = -lr * projections(self._extra, self.dictionary) * member
        square = along.square().sum(dim=1)
        return torch.where(square > 0, (along * extra).sum(dim=1) / square, torch.nan)

    def auroc_scores(self) -> Tensor:
        """AUROC of label-free scores for 'contains a rare feature', (run, 4): the share of a
        sample's squared embedding that the pruned neurons carry; the fall of its positive logit;
        and two controls: the fall with as many neurons left out at random, and the size of the
        embedding (a sample with a rare feature has more features than others)."""
        dense = self._seen["dense"]
        falls = [dense - self._seen[name] for name in ("masked", "random")]
        scores = (self._seen["lost"], *falls, self._seen["size"])
        return torch.stack([auroc(score, self.contains) for score in scores], dim=1)
