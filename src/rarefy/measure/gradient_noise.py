"""Signal and noise of a network's gradients, weight by weight, from a few batches.

*Signal.* A classifier's mean gradient at the start has two parts: one tells classes apart, the
other only moves all scores towards the labels' frequencies and would be the same with labels drawn
from a hat. Signal is the first: the gradient of

    loss(answers, labels) - mean over the batch's labels y of loss(answers, y),

times b/(b - 1) for a batch of b. For cross-entropy it is the covariance of label and slope,
sum over j of Cov(1[y = j], dF_j/dw), whatever the scores are, and for equal scores it is the whole
gradient, as 002 App. I takes it. With labels that know nothing of the inputs its mean is 0.

*Two halves.* Even and odd batches are summed up apart: weights are ranked by one half and measured
on the other, or the ranking would find signal in the luck of its own samples. In a half of N
samples, mean^2 - variance/N is an estimate of the squared mean without bias.

*Seen or not.* Each batch's signal gradient is projected on the sum of all before it. Without signal
the projections have mean 0 whatever the weights' correlations (a martingale): Student's t decides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from rarefy.core.errors import UsageError, bad_value
from rarefy.pruning.filters import Filters
from rarefy.pruning.masks import kept_count
from rarefy.pruning.models.prunable import Layers, find_prunable
from rarefy.pruning.models.wrappers import unwrapped

Loss = Callable[[Tensor, Tensor], Tensor]
LEAST_BATCHES = 4
"""Two in each half: fewer have no variance."""


@dataclass
class Half:
    """Running moments of one weight over half of the batches, (filter, weight of it)."""

    update: Tensor
    """mean of the whole gradient, by which the optimiser moves"""
    mean: Tensor
    """mean of the signal gradient"""
    squares: Tensor
    """sum over batches of size * (signal gradient - mean)^2"""
    samples: int = 0
    batches: int = 0

    @classmethod
    def of(cls, like: Tensor) -> Half:
        return cls(torch.zeros_like(like), torch.zeros_like(like), torch.zeros_like(like))

    def add(self, update: Tensor, signal: Tensor, size: int) -> None:
        self.samples, self.batches = self.samples + size, self.batches + 1
        part = size / self.samples
        self.update += part * (update - self.update)
        off = signal - self.mean
        self.mean += part * off
        self.squares += size * off * (signal - self.mean)

    def variance(self) -> Tensor:
        """Of one sample's gradient: a batch's has 1/size of it."""
        return self.squares / (self.batches - 1)

    def energy(self) -> Tensor:
        """The squared mean, without bias (and so at times negative)."""
        return self.mean.square() - self.variance() / self.samples


@dataclass(frozen=True)
class LayerNoise:
    """One prunable weight: where it starts, and both halves' moments."""

    name: str
    filters: Filters
    start: Tensor
    halves: tuple[Half, Half]
    projections: list[float] = field(default_factory=list)

    def kept_energies(
        self, keeps: np.ndarray, lr: float, updates: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """(sum of m^2, sum of v) over what TopK keeps of every filter, one for each of ``keeps``.

        Weights are ranked by |w0 - lr * updates * gradient|, by |gradient| if ``updates`` is
        infinite: with the gradient of one half, the energies being those of the other.
        """
        counts = kept_count(torch.from_numpy(1 - keeps), self.filters.size).numpy()
        found = np.zeros((2, len(keeps)))
        for ranking, measured in (self.halves, self.halves[::-1]):
            moved = ranking.update
            if updates < float("inf"):
                moved = self.start - lr * updates * moved
            order = moved.abs().argsort(dim=1, descending=True, stable=True)
            for place, values in enumerate((measured.energy(), measured.variance())):
                ranked = values.gather(1, order).sum(dim=0, dtype=torch.float64)
                found[place] += ranked.cumsum(dim=0).cpu().numpy()[counts - 1] / 2
        return found[0], found[1]


@dataclass(frozen=True)
class GradientNoise:
    """What ``measure_gradients`` saw."""

    layers: list[LayerNoise]
    samples: int
    batches: int
    projections: list[float]
    """of every batch but the first on the sum of those before, all layers together"""


def no_signal_p_value(projections: list[float]) -> float:
    """p-value of "there is no signal", one-sided."""
    values = np.array(projections)
    spread = values.std(ddof=1)
    if not spread > 0:
        return 0.0 if values.mean() > 0 else 1.0
    score = values.mean() / spread * np.sqrt(len(values))
    return float(stats.t.sf(score, len(values) - 1))


def measure_gradients(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    layers: Layers | None = None,
    loss: Loss = functional.cross_entropy,
) -> GradientNoise:
    """Gradients of the weights as they are, in training mode and without autocast.

    ``loss`` must be a mean over samples, labels one class per sample. The model stays what it was:
    weights, buffers, ``.grad``, training flags and the state of the random generators. Frozen
    weights are passed over. Memory: about eight times the prunable weights, beside a training step.
    """
    model = unwrapped(model)
    found = [each for each in find_prunable(model, layers) if each.parameter.requires_grad]
    if not found:
        raise UsageError("model: all its prunable weights are frozen (requires_grad is False)")
    rows = []
    for each in found:
        start = each.filters.rows(each.parameter.detach()).float().clone()
        halves = Half.of(start), Half.of(start)
        rows.append(LayerNoise(each.name, each.filters, start, halves))
    weights = {each.name: each.parameter.detach().requires_grad_() for each in found}
    total, count, together = 0, 0, []
    with _as_it_was(model, found[0].parameter.device):
        for inputs, labels in batches:
            size = _checked(count, inputs, labels)
            gradients = _gradients(model, weights, inputs, labels, loss, count)
            products, lengths = [], []
            for row, update, signal in zip(rows, *gradients, strict=True):
                update, signal = (row.filters.rows(each).float() for each in (update, signal))
                before = sum(half.samples * half.mean for half in row.halves)
                products.append((before * signal).sum(dtype=torch.float64))
                lengths.append(torch.as_tensor(before).square().sum(dtype=torch.float64))
                row.halves[count % 2].add(update, signal, size)
            if count:
                product = torch.stack(products).cpu().numpy()
                length = torch.stack(lengths).cpu().numpy()
                scale = np.sqrt(size)  # a smaller batch is less certain
                together.append(_ratio(scale * product.sum(), length.sum()))
                for row, one, square in zip(rows, product, length, strict=True):
                    row.projections.append(_ratio(scale * one, square))
            total, count = total + size, count + 1
    if count < LEAST_BATCHES:
        raise bad_value("batches", count, f"must be {LEAST_BATCHES} or more")
    return GradientNoise(rows, total, count, together)


def _ratio(product: float, square: float) -> float:
    return float(product / np.sqrt(square)) if square > 0 else 0.0


def _gradients(
    model: nn.Module,
    weights: Mapping[str, Tensor],
    inputs: Tensor,
    labels: Tensor,
    loss: Loss,
    place: int,
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(whole, signal) gradients of the weights."""
    # a batch must not see what the one before left in running averages
    buffers = {name: each.clone() for name, each in model.named_buffers()}
    answers = functional_call(model, {**weights, **buffers}, (inputs,))
    whole = loss(answers, labels)
    if whole.ndim or not bool(torch.isfinite(whole)):
        value = whole.item() if not whole.ndim else tuple(whole.shape)
        raise UsageError(f"loss={value} on batch {place}: must be one finite number")
    classes, counts = labels.unique(return_counts=True)
    anyhow = torch.zeros_like(whole)
    for label, number in zip(classes, counts, strict=True):
        anyhow = anyhow + number / len(labels) * loss(answers, torch.full_like(labels, label))
    apart = (whole - anyhow) * (len(labels) / (len(labels) - 1))
    several = list(weights.values())
    first, second = (
        torch.autograd.grad(value, several, retain_graph=again, allow_unused=True)
        for value, again in ((whole, True), (apart, False))
    )
    return _filled(first, several), _filled(second, several)


def _filled(gradients: tuple[Tensor | None, ...], like: list[Tensor]) -> tuple[Tensor, ...]:
    """A weight that the answers do not need has gradient 0."""
    pairs = zip(gradients, like, strict=True)
    return tuple(torch.zeros_like(one) if each is None else each for each, one in pairs)


def _checked(place: int, inputs: Tensor, labels: Tensor) -> int:
    if labels.ndim != 1 or labels.is_floating_point() or len(labels) != len(inputs):
        raise bad_value(
            f"labels of batch {place}", tuple(labels.shape), f"must be {len(inputs)} class numbers"
        )
    if len(labels) < 2:
        raise bad_value(f"size of batch {place}", len(labels), "must be 2 or more")
    return len(labels)


@contextlib.contextmanager
def _as_it_was(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Training mode, full precision, gradients on; afterwards all as before."""
    modes = [(module, module.training) for module in model.modules()]
    devices = [device] if device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices=devices),
        torch.enable_grad(),
        torch.autocast(device.type, enabled=False),
    ):
        try:
            model.train()
            yield
        finally:
            for module, mode in modes:
                module.training = mode
