"""Errors on long-tailed samples (003 Definition 1, Theorem 1 2(b)), rare ones included.

A tail is where a statistic of the sample is at least L: Definition 1's ratio of its own class's
active neurons, or |zeta| along its class's special direction, which asks no model. Samples may be
drawn from another law than the data's, so that many of them lie in the tail: every mean is weighted
back, and it is said how many samples of equal weight the estimate is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.compilation import compiled
from rarefy.core.errors import bad_value
from rarefy.data.tail_noise import TailSamples
from rarefy.measure.generalisation import sample_losses
from rarefy.nets.patch_cnn import class_scores, pooled, responses

CHUNK = 1000
"""Test samples at a time. It must not depend on the batch, or a cell's test samples would."""
CRITERIA = ("definition", "special")
"""What "long-tailed" means: the ratio of Definition 1, or |zeta| along the special direction."""
LEAST_ACTIVE = 0.1
"""Share of a class's neurons that Lemma 4 promises to be active, on which the proof rests (131)."""
_MOMENTS = 5  # sums of w, w error, w loss, w^2, w^2 error


@dataclass(frozen=True)
class OwnNeurons:
    """Of each sample, (run, n): Definition 1's ``ratio``, and how many of its own class's neurons
    are ``active``. With none active the ratio is 0/0: it is 0 then, in no tail of L > 0."""

    ratio: Tensor
    active: Tensor


def neuron_products(filters: Tensor, eigenvalues: Tensor) -> Tensor:
    """<A_k^T w_kr, A_k^T w_ks>: (run, classes, m, m), for filters (run, classes, m, d) written in
    the axes of the noise, where A_k is its ``eigenvalues``, (run or 1, classes, d)."""
    if eigenvalues.dim() != 3 or eigenvalues.shape[1:] != (filters.shape[1], filters.shape[3]):
        shape = f"must be (run or 1, {filters.shape[1]}, {filters.shape[3]})"
        raise bad_value("eigenvalues", tuple(eigenvalues.shape), shape)
    through = filters * eigenvalues.to(filters)[:, :, None, :]
    return through @ through.transpose(2, 3)


def own_neurons(seen: Tensor, labels: Tensor, products: Tensor) -> OwnNeurons:
    """003 Definition 1: <sum_R w_yr, xi>/|A_y^T sum_R w_yr|, R(xi) the active neurons of the
    sample's own class.

    seen: ``responses`` to the noise patches, (run, classes, m, n); labels: (run or 1, n); products:
    of ``neuron_products``. The norm is taken from them, m^2 numbers in place of m d.
    """
    on = (seen > 0).to(seen.dtype)
    index = labels.expand(len(seen), -1)[:, None, :]
    square = ((products @ on) * on).sum(dim=2).gather(1, index)[:, 0]
    above = torch.relu(seen).sum(dim=2).gather(1, index)[:, 0]
    active = on.sum(dim=2).gather(1, index)[:, 0]
    length = square.clamp(min=torch.finfo(seen.dtype).tiny).sqrt()
    return OwnNeurons(torch.where(active > 0, above / length, 0.0), active)


@dataclass(frozen=True)
class TailEstimate:
    """Weighted estimates, (run, ..., length): ``probability`` of the tail, mean ``error`` and
    ``loss`` given the tail (NaN where no sample lies in it), ``spread``, the standard error of
    ``error``; how many samples (``effective``) and how many errors (``errors_seen``) of equal
    weight these are worth."""

    probability: Tensor
    error: Tensor
    loss: Tensor
    spread: Tensor
    effective: Tensor
    errors_seen: Tensor


@dataclass
class TailTally:
    """Running sums over samples beyond each of ``lengths``, (length,), class by class."""

    lengths: Tensor
    beyond_sums: Tensor
    all_sums: Tensor
    count: Tensor

    @classmethod
    def empty(
        cls, runs: int, classes: int, lengths: Sequence[float], device: torch.device | str = "cpu"
    ) -> TailTally:
        if not len(lengths) or not all(math.isfinite(length) for length in lengths):
            raise bad_value("lengths", list(lengths), "must be finite, and at least one")
        levels = torch.tensor(list(lengths), dtype=torch.float64, device=device)
        return cls(
            levels,
            levels.new_zeros(runs, _MOMENTS, classes, len(lengths)),
            levels.new_zeros(runs, _MOMENTS, classes, 1),
            levels.new_zeros(runs, classes, 1),
        )

    def add(
        self, statistic: Tensor, one_hot: Tensor, loss: Tensor, error: Tensor, log_weight: Tensor
    ) -> None:
        """Count some samples: all (run or 1, n), but one_hot (run or 1, n, classes)."""
        runs = len(self.count)
        weight = log_weight.double().exp().expand(runs, -1)
        there = one_hot.double().expand(runs, -1, -1)
        wrong = error.double()
        moments = [weight, weight * wrong, weight * loss, weight**2, weight**2 * wrong]
        parts = torch.stack(moments, dim=1)[:, :, None] * there.transpose(1, 2)[:, None]
        inside = (statistic[:, :, None] >= self.lengths).double().expand(runs, -1, -1)
        sums = parts.flatten(1, 2) @ inside
        self.beyond_sums += sums.unflatten(1, (_MOMENTS, -1))
        self.all_sums += parts.sum(dim=3, keepdim=True)
        self.count += there.sum(dim=1)[:, :, None]

    def beyond(self, overall: bool = False) -> TailEstimate:
        """Where the statistic is at least L: (run, classes, length), or ``overall``, all classes
        being equally likely: (run, length)."""
        return self._estimate(self.beyond_sums, overall)

    def below(self, overall: bool = False) -> TailEstimate:
        """Where it is less than L."""
        return self._estimate(self.all_sums - self.beyond_sums, overall)

    def _estimate(self, sums: Tensor, overall: bool) -> TailEstimate:
        there = self.count > 0
        factor = torch.where(there, 1 / self.count.clamp(min=1), 0.0)
        first, error, loss = (sums[:, i] * factor for i in range(3))
        second, second_error = (sums[:, i] * factor**2 for i in (3, 4))
        classes = torch.ones_like(self.count)
        if overall:
            first, error, loss, second, second_error = (
                part.sum(dim=1) for part in (first, error, loss, second, second_error)
            )
            classes = there.sum(dim=1)
        # sums at or near 0 may be differences of equal sums, which leave rounding behind
        some = first > 1e-12 * classes
        mean = torch.where(some, error / first, torch.nan)
        # error is 0 or 1: sum of w^2 (error - mean)^2
        variance = second_error * (1 - 2 * mean) + mean**2 * second
        seen = second_error > 1e-24
        return TailEstimate(
            probability=first / classes,
            error=mean,
            loss=torch.where(some, loss / first, torch.nan),
            spread=variance.clamp(min=0).sqrt() / torch.where(some, first, torch.nan),
            effective=torch.where(some, first**2 / second, 0.0),
            errors_seen=torch.where(seen, error**2 / second_error, 0.0),
        )


@dataclass(frozen=True)
class Tails:
    """``by``: a tally for each of ``CRITERIA``. ``silent``: probability that no neuron of the own
    class is active, so that Definition 1's ratio is 0/0; ``quiet``: that fewer are than Lemma 4
    promises, both (run, classes)."""

    by: dict[str, TailTally]
    silent: Tensor
    quiet: Tensor


def tail_errors(
    filters: Tensor,
    draw: Callable[[int, int], TailSamples],
    samples: int,
    lengths: Sequence[float],
    eigenvalues: Tensor,
    output_scale: float,
    compile_kernels: bool = False,
) -> Tails:
    """Errors beyond ``lengths`` on ``samples`` fresh samples, written in the axes of the noise;
    ``draw(count, chunk)`` gives ``count`` of them, others for every chunk."""
    if samples < 1:
        raise bad_value("samples", samples, "must be at least 1")
    runs, classes, m = filters.shape[:3]
    pool = compiled(pooled) if compile_kernels and filters.is_cuda else pooled
    products = neuron_products(filters, eigenvalues)
    by = {name: TailTally.empty(runs, classes, lengths, filters.device) for name in CRITERIA}
    few = torch.zeros(2, runs, classes, dtype=torch.float64, device=filters.device)
    count = torch.zeros_like(few[0])
    for chunk, start in enumerate(range(0, samples, CHUNK)):
        tail = draw(min(CHUNK, samples - start), chunk)
        here, one_hot = tail.samples, tail.samples.one_hot()
        seen = responses(filters, here.noise)
        noise = pool(seen) * here.noise_scale[:, None, None]
        feature = pool(responses(filters, here.features)) * here.strength[:, None, :]
        scores = output_scale * class_scores(noise, feature, one_hot)
        loss, error = sample_losses(scores, here.labels)
        own = own_neurons(seen, here.labels, products)
        statistics = {"definition": own.ratio, "special": tail.special.abs()}
        for name, tally in by.items():
            tally.add(statistics[name], one_hot, loss, error, tail.log_weight)
        there = one_hot.double().expand(runs, -1, -1)
        weighted = (tail.log_weight.double().exp()[:, :, None] * there).expand(runs, -1, -1)
        missing = torch.stack([own.active == 0, own.active < LEAST_ACTIVE * m]).double()
        few += torch.einsum("srn,rnk->srk", missing, weighted)
        count += there.sum(dim=1)
    silent, quiet = few / torch.where(count > 0, count, torch.nan)
    return Tails(by, silent, quiet)


def balanced_log_weight(log_ratios: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    """Log weight of samples drawn from several laws, a share from each, given log(law/data's own
    law) of every law at every sample (balance heuristic, Veach and Guibas 1995).

    Unbiased whichever law a sample came from; no weight is above 1/share of a law that is nowhere
    below the data's own.
    """
    if len(log_ratios) != len(shares) or abs(sum(shares) - 1) > 1e-9 or min(shares) <= 0:
        raise bad_value("shares", list(shares), "must be more than 0, one per law, and add up to 1")
    parts = [
        ratio.double() + math.log(share) for ratio, share in zip(log_ratios, shares, strict=True)
    ]
    return -torch.logsumexp(torch.stack(torch.broadcast_tensors(*parts)), dim=0)
