"""Loss and error on fresh samples, overall and per class, for a batch of runs.

Test samples are drawn and forgotten chunk by chunk, so that ten thousand of them cost the memory of
a few hundred. A sample counts as an error unless its own class's score is strictly the largest: a
network that says nothing is not right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.compilation import compiled
from rarefy.data.patches import PatchSamples
from rarefy.nets.patch_cnn import class_scores, pooled, responses

CHUNK = 250
"""Test samples at a time. It must not depend on the batch, or a cell's test samples would."""


@dataclass(frozen=True)
class Generalisation:
    """Means over test samples. loss, error: (run,); class_loss, class_error: (run, classes), NaN
    for a class without test samples; samples: how many there were."""

    loss: Tensor
    error: Tensor
    class_loss: Tensor
    class_error: Tensor
    samples: int


def scores_of(
    filters: Tensor, samples: PatchSamples, output_scale: float, compile_kernels: bool = False
) -> Tensor:
    """F_k(x_i): (run, classes, n)."""
    pool = compiled(pooled) if compile_kernels and filters.is_cuda else pooled
    noise = pool(responses(filters, samples.noise)) * samples.noise_scale[:, None, None]
    feature = pool(responses(filters, samples.features)) * samples.strength[:, None, :]
    return output_scale * class_scores(noise, feature, samples.one_hot())


def scores_of_responses(seen: Tensor, samples: PatchSamples, output_scale: float) -> Tensor:
    """The same from responses to the samples' own patches, (run, classes, m, n + classes)."""
    pool, n = pooled(seen) * samples.scales()[:, None, :], len(samples)
    return output_scale * class_scores(pool[..., :n], pool[..., n:], samples.one_hot())


def sample_losses(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy and error of every sample, (run, n) each, from scores (run, classes, n) and
    labels (run or 1, n)."""
    index = labels.expand(len(scores), -1)[:, None, :]
    own = scores.gather(1, index)[:, 0]
    loss = torch.logsumexp(scores, dim=1) - own
    others = scores.scatter(1, index, -torch.inf).amax(dim=1)
    return loss, (~(own > others)).to(scores.dtype)  # NaN is not right either


def generalisation(
    filters: Tensor,
    draw: Callable[[int, int], PatchSamples],
    samples: int,
    output_scale: float,
    compile_kernels: bool = False,
) -> Generalisation:
    """Measures on ``samples`` fresh samples; ``draw(count, chunk)`` gives ``count`` of them, others
    for every chunk."""
    runs, classes = filters.shape[:2]
    loss_sum = torch.zeros(runs, classes, dtype=torch.float64, device=filters.device)
    error_sum, count = torch.zeros_like(loss_sum), torch.zeros_like(loss_sum)
    for chunk, start in enumerate(range(0, samples, CHUNK)):
        here = draw(min(CHUNK, samples - start), chunk)
        scores = scores_of(filters, here, output_scale, compile_kernels)
        loss, error = sample_losses(scores, here.labels)
        one_hot = here.one_hot().to(torch.float64).expand(runs, -1, -1)
        loss_sum += torch.einsum("rn,rnk->rk", loss.to(torch.float64), one_hot)
        error_sum += torch.einsum("rn,rnk->rk", error.to(torch.float64), one_hot)
        count += one_hot.sum(dim=1)
    total = count.sum(dim=1)
    there = torch.where(count > 0, count, torch.nan)
    kind = filters.dtype
    return Generalisation(
        (loss_sum.sum(dim=1) / total).to(kind),
        (error_sum.sum(dim=1) / total).to(kind),
        (loss_sum / there).to(kind),
        (error_sum / there).to(kind),
        samples,
    )
