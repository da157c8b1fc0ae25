"""How a class's filters meet noise (003 Lemmas 3-7): ranks, active filters, memory, balance.

Filters are (run, classes, m, d), written in the coordinates in which A_k is diagonal with the
``eigenvalues`` (run or 1, classes, d), as ``rarefy.data.class_noise`` has them ("rotated").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.data.patches import PatchSamples
from rarefy.measure.generalisation import CHUNK, scores_of, scores_of_responses
from rarefy.measure.tails import neuron_products, own_neurons
from rarefy.nets.patch_cnn import pooled, responses
from rarefy.train.descent import State

# ------------------------------------------------------------------------- ranks, singular values


def noise_spectrum(filters: Tensor, eigenvalues: Tensor) -> Tensor:
    """Singular values of W_j A_j (Lemma 3), largest first: (run, classes, min(m, d)), float64.

    From the smaller of the two Gram matrices: exact to about 1e-8 of the largest value, below what
    weights kept in float32 can tell from zero.
    """
    seen = filters.to(torch.float64) * eigenvalues.to(torch.float64)[:, :, None, :]
    if seen.shape[2] > seen.shape[3]:
        seen = seen.transpose(2, 3)
    square = torch.linalg.eigvalsh(seen @ seen.transpose(2, 3))
    return square.clamp(min=0).sqrt().flip(-1)


def numerical_rank(spectrum: Tensor, d: int) -> Tensor:
    """Singular values above max(m, d) float32 roundings of the largest one: (run, classes).

    The weights were trained in float32; what is smaller may be rounding, whatever the dtype now.
    """
    longest = max(spectrum.shape[-1], d)
    tolerance = longest * torch.finfo(torch.float32).eps
    return (spectrum > tolerance * spectrum[..., :1]).sum(dim=-1)


# ------------------------------------------------------------------------------- responses to noise


def own_responses(filters: Tensor, samples: PatchSamples) -> Tensor:
    """<w_{y_i, r}, xi_i>, a sample's noise seen by its own class's filters: (run, n, m)."""
    seen = responses(filters, samples.noise)  # (run, classes, m, n)
    label = samples.labels.expand(len(seen), -1)[:, None, None, :].expand(-1, 1, seen.shape[2], -1)
    own = seen.gather(1, label)[:, 0].transpose(1, 2)
    return own * samples.noise_scale[:, None, None]


def active_share(filters: Tensor, samples: PatchSamples) -> Tensor:
    """Share of the own class's filters that a sample's noise activates (Lemma 4): (run, n)."""
    own = own_responses(filters, samples)
    return (own > 0).to(filters.dtype).mean(dim=2)


def noise_response(filters: Tensor, samples: PatchSamples) -> Tensor:
    """sum over r of ReLU(<w_{k,r}, xi_i>): (run, classes, n)."""
    seen = pooled(responses(filters, samples.noise))
    return seen * samples.noise_scale[:, None, None]


def equivalent_length(filters: Tensor, samples: PatchSamples, eigenvalues: Tensor) -> Tensor:
    """|A_y^T sum of the active w_{y,r}| of Definition 1: (run, n); 0 where no filter is active.
    A sample's own ``noise_response`` divided by it is the L up to which it is long-tailed."""
    seen = responses(filters, samples.noise)
    own = own_neurons(seen, samples.labels, neuron_products(filters, eigenvalues))
    label = samples.labels.expand(len(seen), -1)[:, None, :]
    above = pooled(seen).gather(1, label)[:, 0]
    return torch.where(own.active > 0, above / own.ratio, 0.0)  # Definition 1 is their quotient


# -------------------------------------------------------------------------------------- own, other


@dataclass(frozen=True)
class Memorisation:
    """Lemma 5 for every class j, (run, classes) each: mean response of its filters to the noise of
    its own and of other classes' training samples, the smallest quotient of an own by another one
    (infinite where no other is seen), and the share of pairs in which own is at least ``factor``
    times other."""

    own: Tensor
    other: Tensor
    worst: Tensor
    pairs: Tensor
    factor: float


def memorisation(response: Tensor, one_hot: Tensor, factor: float = 1.0) -> Memorisation:
    """From ``noise_response``, (run, classes, n), on the training samples; ``one_hot``: (run or 1,
    n, classes)."""
    if not factor > 0:
        raise bad_value("factor", factor, "must be more than 0")
    own = one_hot.transpose(1, 2).expand_as(response) > 0.5
    mine, others = own.sum(dim=2), (~own).sum(dim=2)
    if bool((mine == 0).any() | (others == 0).any()):
        raise bad_value("one_hot", tuple(one_hot.shape), "needs samples of at least two classes")
    zero = torch.zeros_like(response)
    least = response.masked_fill(~own, torch.inf).amin(dim=2)
    most = response.masked_fill(own, -torch.inf).amax(dim=2)
    good = torch.zeros_like(least)
    for k in range(response.shape[1]):  # pairs of one class at a time
        row = response[:, k]
        enough = row[:, :, None] >= factor * row[:, None, :]
        pair = own[:, k, :, None] & ~own[:, k, None, :]
        good[:, k] = (enough & pair).sum(dim=(1, 2)).to(good.dtype)
    return Memorisation(
        own=torch.where(own, response, zero).sum(dim=2) / mine,
        other=torch.where(own, zero, response).sum(dim=2) / others,
        worst=torch.where(most > 0, least / most, torch.inf),
        pairs=good / (mine * others),
        factor=factor,
    )


# ----------------------------------------------------------------------------------- loss residuals


def odds_against(scores: Tensor, labels: Tensor) -> Tensor:
    """log of (1 - logit_y)/logit_y of every sample: (run, n), from scores (run, classes, n).

    The loss is its softplus and the residual 1 - logit_y its sigmoid, both exact however small,
    where the difference of 1 and a probability would be rounding.
    """
    index = labels.expand(len(scores), -1)[:, None, :]
    own = scores.gather(1, index)[:, 0]
    return torch.logsumexp(scores.scatter(1, index, -torch.inf), dim=1) - own


def log_imbalance(odds: Tensor) -> Tensor:
    """log of the largest over the smallest residual among the samples, which Lemma 7 bounds by a
    constant kappa: (run, ...) from (run, ..., n). The quotient itself may be beyond any float."""
    log_residual = torch.nn.functional.logsigmoid(odds)
    return log_residual.amax(dim=-1) - log_residual.amin(dim=-1)


@dataclass
class ResidualMemory:
    """A tracker of ``odds_against``, (run, n), that sums the residuals of (8) on the way.

    To be read after every number of updates from 0 on. ``rate``: the learning rate of the next
    update, (run,), 0 for a run that stands still (it may change in place); ``steps``: how many
    updates there will be, since the last weights make none. ``total``: sum over updates of eta
    (1 - logit_y), (run, n), so that eta b(S) is the norm of its entries in S.
    """

    samples: PatchSamples
    output_scale: float
    rate: Tensor
    steps: int
    compile_kernels: bool = False
    total: Tensor = field(init=False)
    _next: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = self.rate.new_zeros(len(self.rate), len(self.samples))

    def __call__(self, state: State) -> Tensor:
        if state.step != self._next:
            raise bad_value("step", state.step, f"must be {self._next}: every step is summed")
        self._next += 1
        odds = odds_against(self._scores(state.parameters), self.samples.labels)
        if state.step < self.steps:
            self.total = self.total + self.rate[:, None] * torch.sigmoid(odds)
        return odds

    def _scores(self, parameters: dict[str, Tensor]) -> Tensor:
        if "responses" in parameters:  # training by the Gram matrix has them at hand
            return scores_of_responses(parameters["responses"], self.samples, self.output_scale)
        filters = parameters["filters"]
        return scores_of(filters, self.samples, self.output_scale, self.compile_kernels)

    def stored(self) -> Tensor:
        """eta b(S_k) of (8), class by class: (run, classes)."""
        one_hot = self.samples.one_hot().to(self.total).expand(len(self.total), -1, -1)
        return torch.einsum("rn,rnk->rk", self.total.square(), one_hot).sqrt()


def by_chunks(
    filters: Tensor,
    draw: Callable[[int, int], PatchSamples],
    samples: int,
    measure: Callable[[Tensor, PatchSamples], Tensor],
) -> Tensor:
    """``measure(filters, chunk)`` on ``samples`` fresh samples, joined along its last axis.
    ``draw(count, chunk)`` gives the samples, as ``rarefy.measure.generalisation`` asks for them."""
    found = []
    for chunk, start in enumerate(range(0, samples, CHUNK)):
        found.append(measure(filters, draw(min(CHUNK, samples - start), chunk)))
    return torch.cat(found, dim=-1)
